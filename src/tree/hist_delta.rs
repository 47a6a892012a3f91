// SPDX-License-Identifier: GPL-2.0

//! `hist_delta` and `hist_delta_jsonl` of an event: the intervals of its histograms, as `hist` and
//! as `hist_jsonl` show them. An open file is a reader.

use super::{
    contents::Shown,
    names::KernelNames,
    state::{
        OpenDelta,
        OpenState,
        Tree, //
    },
};
use crate::{
    hist::show::{
        HistFile,
        IntervalView,
        Now,
        Origin,
        View, //
    },
    intervals::Taken,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::{
        clock,
        poll::{
            self,
            Mask,
            PollTable, //
        },
    },
};
use kernel::{
    prelude::*,
    str::CString,
    sync::atomic::Relaxed, //
};

pub(super) const TEXT: OverlayFile<Tree> = OverlayFile {
    polls: true,
    rounds: true,
    ..OverlayFile::new(c"hist_delta", 0o440, &HistDeltaOps { jsonl: false })
};

pub(super) const JSONL: OverlayFile<Tree> = OverlayFile {
    polls: true,
    rounds: true,
    ..OverlayFile::new(c"hist_delta_jsonl", 0o440, &HistDeltaOps { jsonl: true })
};

struct HistDeltaOps {
    jsonl: bool,
}

impl FileOps<Tree> for HistDeltaOps {
    fn open(&self, tree: &Tree, file: &Opened<'_>, _truncate: bool) -> Result<OpenState> {
        let name = file.event()?;
        let Some(event) = tree.engine.find_id(name)? else {
            return Ok(OpenState::None);
        };
        let open = OpenDelta {
            reader: tree.engine.reader(event, name.dir, file.real.clone())?,
            system: CString::try_from(name.system)?,
            event: CString::try_from(name.event)?,
        };
        let reader = open.reader.reader();
        reader.begin(file.nonblock, tree.engine.max_map_bytes())?;
        Ok(OpenState::Delta(open))
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, open: &OpenState) -> Result<Shown> {
        let names = KernelNames::default();
        let OpenState::Delta(open) = open else {
            return Ok(Shown::Hist(HistFile::intervals([].into_iter())?, names));
        };
        let reader = open.reader.reader();
        match reader.is_gone() {
            true => reader.end(),
            false => tree.engine.update_reader(reader),
        }
        let mut taken = reader.take(file.nonblock, tree.engine.max_map_bytes())?;
        match self.show(tree, open, &mut taken, &names) {
            Ok(text) => {
                reader.shown(&taken);
                tree.reads.add(1, Relaxed);
                Ok(Shown::Hist(text, names))
            }
            Err(err) => {
                taken.put_back();
                Err(err)
            }
        }
    }

    fn poll(
        &self,
        _tree: &Tree,
        _file: &Opened<'_>,
        open: &OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask> {
        let OpenState::Delta(open) = open else {
            return Ok(poll::IN);
        };
        let reader = open.reader.reader();
        reader.worker().queue_poll(table);
        Ok(reader.poll())
    }
}

impl HistDeltaOps {
    /// Reads the entries of the intervals.
    fn show(
        &self,
        tree: &Tree,
        open: &OpenDelta,
        taken: &mut Taken,
        names: &KernelNames,
    ) -> Result<HistFile> {
        let lost = taken.lost;
        let views = taken
            .intervals
            .iter_mut()
            .map(|(life, interval)| IntervalView {
                view: View {
                    hist: &life.histogram,
                    names,
                    name: life.trigger.name.as_deref(),
                    filter: life.trigger.filter.as_deref(),
                    paused: life.paused,
                },
                reader: life.reader.as_deref(),
                interval,
                ended: life.ended.map(|end| end.how),
                lost,
            });
        match self.jsonl {
            false => HistFile::intervals(views),
            true => HistFile::intervals_jsonl(
                views,
                &Origin {
                    system: open.system.to_bytes(),
                    event: open.event.to_bytes(),
                    boot_id: tree.boot_id.as_ref().map(|id| &id[..]),
                    now: || Now {
                        realtime_ns: clock::real(),
                        monotonic_ns: clock::mono(),
                    },
                },
            ),
        }
    }
}

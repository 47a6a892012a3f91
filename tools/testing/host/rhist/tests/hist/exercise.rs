// SPDX-License-Identifier: GPL-2.0

//! From a command to its histogram, to the text of its files, and from the trigger's line back to
//! the histogram.

use kernel::sync::Arc;
use rhist::hist::show;
use rhist::hist::show::View;
use rhist::hist::Histogram;
use rhist::limits::MAP_BITS_MIN;
use rhist::text::Text;
use rhist::trigger::Command;
use rhist::trigger::Error;
use rhist::trigger::Trigger;

use super::events::*;

/// Exercises a command: any text is accepted or refused without a panic, and the line of an
/// accepted one gives the same histogram and the same line. `check` gets the text of its
/// `hist_jsonl`.
pub(crate) fn exercise(written: &[u8], check: fn(&str)) {
    let command = Command::parse(written);
    let Ok(params) = command.hist() else { return };
    let (trigger, hist) = match added(params) {
        Ok(added) => added,
        Err(error) => {
            let command = command.text().unwrap();
            assert!(error.caret <= command.len(), "{error:?}");
            return;
        }
    };
    count(&hist);
    let view = || shown(&trigger, &hist);
    text(|out| show_file(out, [view()].into_iter()));
    check(&text(|out| {
        show_jsonl(out, [view()].into_iter(), &Functions)
    }));
    text(|out| show::hist_debug_file(out, [view()].into_iter()));

    let line = line_of(&trigger, &hist);
    let again = line.strip_prefix(b"hist:").unwrap();
    let again = again.strip_suffix(b" [active]\n").unwrap();
    let readable = line.escape_ascii();
    match added(again) {
        Ok((trigger, again)) => {
            assert!(
                hist.spec().matches(again.spec()) && again.spec().matches(hist.spec()),
                "{readable}"
            );
            let again = line_of(&trigger, &again);
            assert_eq!(again.escape_ascii().to_string(), readable.to_string());
        }
        Err(error) => panic!("{readable}: {error:?}"),
    }
}

/// Parses and builds. Large maps take long to make, and behave like small ones.
fn added(params: &[u8]) -> Result<(Trigger, Arc<Histogram>), Error> {
    let mut trigger = Trigger::parse(params)?;
    trigger.size.get_or_insert_default().bits = MAP_BITS_MIN;
    let hist = attach(&zoo(), &trigger)?;
    Ok((trigger, hist))
}

/// The histogram as it is shown when its trigger is this one.
fn shown<'a>(trigger: &'a Trigger, hist: &'a Arc<Histogram>) -> View<'a> {
    View {
        name: trigger.name.map(|name| trigger.bytes(name)),
        filter: trigger.filter.map(|filter| trigger.bytes(filter.text)),
        ..view(hist)
    }
}

fn line_of(trigger: &Trigger, hist: &Arc<Histogram>) -> Vec<u8> {
    let mut line = Text::new();
    show::trigger_line(&mut line, &shown(trigger, hist)).unwrap();
    line.as_bytes().to_vec()
}

/// Counts different records: full, with strings, cut short, and empty.
fn count(hist: &Histogram) {
    let full = Bytes::new(ZOO_END);
    let cut = Bytes(full.0[..30].to_vec());
    let strings = full.clone().data_loc(67, b"a string\0").rel_loc(71, b"");
    for record in [&full, &strings, &strings, &cut, &Bytes(Vec::new())] {
        record.hit(hist);
    }
    strings.hit_in(hist, CPUS - 1, &[b'x'; 16]);
    assert_eq!((hist.hits(), hist.drops()), (6, 0));
}

// SPDX-License-Identifier: GPL-2.0

//! The files under `rhist/` that are ours: `trigger`, `hist` and `hist_debug` of each event,
//! `error_log`, `hist_stats`, and those of user events.

use crate::engine::Attached;
use crate::engine::Engine;
use crate::engine::Failure;
use crate::filter;
use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::poll;
use crate::ftrace::poll::Mask;
use crate::ftrace::poll::PollTable;
use crate::ftrace::text;
use crate::ftrace::tracefs;
use crate::ftrace::tracefs::Access;
use crate::ftrace::tracefs::Contents;
use crate::ftrace::tracefs::EventName;
use crate::ftrace::tracefs::KernelFile;
use crate::ftrace::tracefs::SpecialFops;
use crate::ftrace::tracefs::TracingDir;
use crate::ftrace::tracefs::UserBuffer;
use crate::hist::show;
use crate::hist::show::HistFile;
use crate::hist::show::Names;
use crate::hist::show::View;
use crate::hist::Histogram;
use crate::hook::poll::Look;
use crate::hook::poll::Poller;
use crate::mirror::Dir;
use crate::mirror::Opened;
use crate::mirror::Overlay;
use crate::mirror::OverlayFile;
use crate::text::copy;
use crate::text::Text;
use crate::trigger::merge_by_age;
use crate::trigger::Command;
use crate::trigger::Error;
use crate::trigger::ErrorLog;
use crate::trigger::Hint;
use crate::trigger::HintText;
use crate::trigger::KernelTriggers;
use crate::user_events::UserEvents;
use core::cell::Cell;
use core::str;
use kernel::mm::virt::VmaNew;
use kernel::page::PAGE_SIZE;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;
use kernel::sync::Mutex;

/// The state behind the files.
pub(crate) struct Tree {
    engine: Engine,
    error_logs: Pin<KBox<Mutex<ErrorLogs>>>,
    /// How often a `hist` file was rendered.
    reads: Atomic<u64>,
    user_events: Arc<UserEvents>,
    user_events_data: Arc<SpecialFops>,
}

impl Tree {
    pub(crate) fn new(
        engine: Engine,
        user_events: Arc<UserEvents>,
        user_events_data: Arc<SpecialFops>,
    ) -> Result<Self> {
        let error_logs = KBox::pin_init(kernel::new_mutex!(ErrorLogs::new()), GFP_KERNEL)?;
        Ok(Self {
            engine,
            error_logs,
            reads: Atomic::new(0),
            user_events,
            user_events_data,
        })
    }

    /// Calls `f` with the error log of a tracing directory. Fails with `ENOMEM` if it has none yet.
    fn with_error_log<R>(&self, dir: &TracingDir, f: impl FnOnce(&mut ErrorLog) -> R) -> Result<R> {
        let mut logs = self.error_logs.lock();
        logs.retain(|(dir, _)| !dir.removed());
        let index = match logs.iter().position(|(of, _)| of == dir) {
            Some(index) => index,
            None => {
                let log = KBox::new(ErrorLog::new(), GFP_KERNEL)?;
                logs.push((dir.clone(), log), GFP_KERNEL)?;
                logs.len() - 1
            }
        };
        Ok(f(&mut logs[index].1))
    }

    /// Appends the triggers of an event, each behind `column`: those of the kernel in `listing`, and
    /// ours. Fails as [`Tree::triggers`].
    fn list(&self, out: &mut Text, column: &[u8], name: EventName<'_>, listing: &[u8]) -> Result {
        let theirs = KernelTriggers::all(listing)?;
        let switches = self.engine.switches(name)?;
        let switches = switches.iter().map(|(older, line)| (*older, &line[..]));
        let triggers = self.engine.triggers(name)?;
        let names = KernelNames::default();
        let views = triggers.iter().map(|trigger| view(trigger, &names));
        show::triggers(out, column, merge_by_age(switches, &theirs), views)
    }

    /// Appends the triggers of all events of a tracing directory. `open_file` is any open file of tracefs.
    fn list_all(&self, out: &mut Text, dir: &TracingDir, open_file: &KernelFile) -> Result {
        let names = self.engine.triggered(dir)?;
        for [system, event] in &names {
            let name = EventName { dir, system, event };
            let path = [c"events", system, event, c"trigger"];
            let mut column = Text::new();
            show::event_column(&mut column, system.to_bytes(), event.to_bytes())?;
            let listed = open_file
                .open_other_for_reading(dir, &path)
                .and_then(|kernel| self.list(out, column.as_bytes(), name, &kernel.read()?));
            match listed {
                // The event is gone meanwhile.
                Err(error) if error == ENOENT || error == ENODEV => (),
                listed => listed?,
            }
        }
        Ok(())
    }

    /// One write to the `trigger` file of an event: one command.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a text of a page or more, `EFAULT`; else those of [`Engine::execute`]. They are in the error log.
    fn write_trigger(
        &self,
        name: EventName<'_>,
        kernel: Option<&KernelFile>,
        data: &UserBuffer,
    ) -> Result {
        let none = Command::parse(b"");
        if data.len() >= PAGE_SIZE {
            return Err(self.log(name, &none, Error::own(HintText::TooLong, 0).into()));
        }
        let written = data
            .read()
            .map_err(|errno| self.log(name, &none, errno.into()))?;
        let command = Command::parse(&written);
        let done = match kernel {
            Some(kernel) => self.engine.execute(name, kernel, &command, data),
            None => Err(EINVAL.into()),
        };
        let note = done.map_err(|failure| self.log(name, &command, failure))?;
        if let Some(hint) = note {
            // The command has succeeded, with or without memory for that.
            let _ = self.log_own(name, &command, hint.text.as_str().as_bytes(), hint.caret);
        }
        Ok(())
    }

    /// Logs a failure: in any case, so that nobody takes an older entry for that of this command. Returns the errno for
    /// `write(2)`.
    #[cold]
    #[inline(never)]
    fn log(
        &self,
        name: EventName<'_>,
        command: &Command<'_>,
        failure: Failure,
    ) -> kernel::error::Error {
        // Without memory for the entry the errno still reaches the user.
        match failure {
            Failure::Command(error, before) => {
                let mut logged = false;
                for error in Iterator::chain(before.iter(), [&error]) {
                    if error.text.is_some() || error.hint.is_some() {
                        let _ = self.log_error(name, command, error);
                        logged = true;
                    }
                }
                if !logged {
                    let text = HintText::of(error.errno).as_str();
                    let _ = self.log_own(name, command, text.as_bytes(), 0);
                }
                error.errno
            }
            Failure::Referenced(by) => {
                let _ = self.log_own(name, command, by.as_bytes(), 0);
                EBUSY
            }
            Failure::Logged(errno) => errno,
            Failure::Filter(error, filter) => {
                let text = error.text.as_str();
                let (text, caret) = (with_hint(text, error.hint), caret(error.caret, error.hint));
                let _ = text
                    .and_then(|text| self.push(name.dir, filter::LOCATION, &filter, &text, caret));
                error.errno
            }
        }
    }

    /// Logs an error that C logs, too, or of which rhist has something to say.
    fn log_error(&self, name: EventName<'_>, command: &Command<'_>, error: &Error) -> Result {
        let caret = caret(error.caret, error.hint);
        match (error.text, error.hint) {
            (Some(text), hint) => {
                let text = with_hint(text.as_str(), hint)?;
                self.push(
                    name.dir,
                    &location(b"hist:", name)?,
                    &command.text()?,
                    &text,
                    caret,
                )
            }
            (None, Some(hint)) => self.log_own(name, command, hint.text.as_str().as_bytes(), caret),
            (None, None) => Ok(()),
        }
    }

    /// Logs what C does not: its location is another one.
    #[cold]
    #[inline(never)]
    fn log_own(
        &self,
        name: EventName<'_>,
        command: &Command<'_>,
        text: &[u8],
        caret: usize,
    ) -> Result {
        self.push(
            name.dir,
            &location(b"rhist:", name)?,
            &command.text()?,
            text,
            caret,
        )
    }

    fn push(
        &self,
        dir: &TracingDir,
        location: &[u8],
        command: &[u8],
        text: &[u8],
        caret: usize,
    ) -> Result {
        let time = text::local_clock_ns();
        self.with_error_log(dir, |log| log.push(time, location, command, text, caret))?
    }
}

/// The location of an entry of the error log: `kind` and the event.
fn location(kind: &[u8], name: EventName<'_>) -> Result<KVec<u8>> {
    let mut location = KVec::new();
    for piece in [kind, name.system.to_bytes(), b":", name.event.to_bytes()] {
        location.extend_from_slice(piece, GFP_KERNEL)?;
    }
    Ok(location)
}

/// A text of C, with what rhist adds.
fn with_hint(text: &str, hint: Option<Hint>) -> Result<KVec<u8>> {
    let mut line = copy(text.as_bytes())?;
    if let Some(hint) = hint {
        line.extend_from_slice(b": ", GFP_KERNEL)?;
        line.extend_from_slice(hint.text.as_str().as_bytes(), GFP_KERNEL)?;
    }
    Ok(line)
}

/// Where the caret goes: C's place, unless rhist knows a better one.
fn caret(c: usize, hint: Option<Hint>) -> usize {
    hint.map_or(c, |hint| hint.caret)
}

/// What an open `hist` file remembers for `poll()`: the hits of the event's histograms at two moments.
pub(crate) struct HistPollState {
    poller: Poller,
    /// What the last call has counted. Locked for a moment only.
    counted: Pin<KBox<Mutex<Option<Counted>>>>,
    /// When it was last read.
    last_read: Atomic<u64>,
    /// When it was last read, or `POLLPRI` was reported.
    last_reported: Atomic<u64>,
}

/// The hits at a call of `poll()`.
struct Counted {
    look: Look,
    /// [`Engine::changes`] before they were counted.
    changes: u64,
    hits: u64,
}

impl HistPollState {
    /// Adds the caller to those who are woken by hits. Returns the hits of the event so far. They are counted only if
    /// there may have been some since the last call, since that takes a look at all entries.
    fn poll(&self, engine: &Engine, name: EventName<'_>, table: &PollTable<'_>) -> Result<u64> {
        let look = self.poller.look_again(table);
        let changes = engine.changes();
        let known = self.counted.lock().as_ref().and_then(|last| {
            let same = last.changes == changes && look.is_quiet_since(&last.look);
            same.then_some(last.hits)
        });
        let hits = match known {
            Some(hits) => hits,
            None => engine.hits(name)?,
        };
        *self.counted.lock() = Some(Counted {
            look,
            changes,
            hits,
        });
        Ok(hits)
    }

    fn read(&self, hits: u64) {
        self.last_read.store(hits, Relaxed);
        self.last_reported.store(hits, Relaxed);
    }

    fn mask(&self, hits: u64) -> Mask {
        let mut mask = 0;
        if self.last_read.load(Relaxed) != hits {
            mask |= poll::IN;
        }
        if self.last_reported.xchg(hits, Relaxed) != hits {
            mask |= poll::PRI;
        }
        mask
    }
}

/// The error logs of the tracing directories that had errors. Locked last, and for a moment only.
type ErrorLogs = KVec<(TracingDir, KBox<ErrorLog>)>;

/// The view of a trigger for `src/hist/`.
fn view<'a>(attached: &'a Attached, names: &'a KernelNames) -> View<'a> {
    View {
        hist: &attached.histogram,
        names,
        name: attached.name.as_deref(),
        filter: attached.filter.as_deref(),
        paused: attached.paused,
    }
}

/// The contents of a file of rhist.
pub(crate) enum Shown {
    /// The whole text, and whether it was read.
    Text(Arc<Text>, bool),
    /// A `hist` file.
    Hist(HistFile, KernelNames),
}

impl Contents for Shown {
    type Piece = Text;

    fn next_piece(&mut self) -> Result<Option<Arc<Text>>> {
        match self {
            Self::Text(text, read) => {
                let first = !core::mem::replace(read, true);
                Ok((first && !text.as_bytes().is_empty()).then(|| text.clone()))
            }
            Self::Hist(file, names) => match file.next_piece(names)? {
                Some(piece) => Ok(Some(Arc::new(piece, GFP_KERNEL)?)),
                None => Ok(None),
            },
        }
    }

    fn rewind(&mut self) {
        match self {
            Self::Text(_, read) => *read = false,
            Self::Hist(file, _) => file.rewind(),
        }
    }
}

/// A file of rhist.
#[derive(Clone, Copy)]
enum OwnFile<'a> {
    ErrorLog(&'a TracingDir),
    ShowEventTriggers(&'a TracingDir),
    UserEventsStatus,
    HistStats,
    Trigger(EventName<'a>),
    Hist(EventName<'a>),
    HistDebug(EventName<'a>),
}

impl<'a> OwnFile<'a> {
    fn new(file: &Opened<'a>) -> Result<Self> {
        match (file.event, file.name.to_bytes()) {
            (None, b"error_log") => Ok(OwnFile::ErrorLog(file.dir)),
            (None, b"show_event_triggers") => Ok(OwnFile::ShowEventTriggers(file.dir)),
            (None, b"user_events_status") => Ok(OwnFile::UserEventsStatus),
            (None, b"hist_stats") => Ok(OwnFile::HistStats),
            (Some(event), b"trigger") => Ok(OwnFile::Trigger(event)),
            (Some(event), b"hist") => Ok(OwnFile::Hist(event)),
            (Some(event), b"hist_debug") => Ok(OwnFile::HistDebug(event)),
            _ => Err(ENOENT),
        }
    }
}

/// Names of symbols and system calls of the running kernel.
#[derive(Default)]
pub(crate) struct KernelNames {
    /// The system calls that were looked up, a bit for each. A lookup takes event_mutex and goes through all events, and
    /// a file may have a hundred thousand of them.
    looked_up: [Cell<u64>; 8],
    /// Which of these system calls the kernel has.
    found: [Cell<u64>; 8],
}

impl Names for KernelNames {
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> Result {
        out.bytes(text::symbol(address, offset).as_bytes())
    }

    fn address(&self, out: &mut Text, histogram: &Histogram) -> Result {
        out.bytes(text::hash_pointer(histogram).as_bytes())
    }

    fn syscall(&self, number: u64) -> Option<&[u8]> {
        // C has room for 32 bits of it only.
        let number = number as u32;
        let name = text::syscall(u64::from(number))?.to_bytes();
        let (word, bit) = ((number / u64::BITS) as usize, 1 << (number % u64::BITS));
        let (Some(looked_up), Some(found)) = (self.looked_up.get(word), self.found.get(word))
        else {
            return has_syscall(name).then_some(name);
        };
        if looked_up.get() & bit == 0 {
            looked_up.set(looked_up.get() | bit);
            found.set(found.get() | if has_syscall(name) { bit } else { 0 });
        }
        (found.get() & bit != 0).then_some(name)
    }

    fn go_on(&self) -> Result {
        cpu::yield_unless_killed()
    }
}

/// Whether this kernel has the system call `name` (`sys_…`): it has an event then.
fn has_syscall(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"sys_").map(str::from_utf8);
    let Some(Ok(name)) = name else {
        return false;
    };
    let event = CString::try_from_fmt(fmt!("sys_enter_{name}"));
    event.is_ok_and(|event| Event::exists(c"syscalls", &event))
}

impl Overlay for Tree {
    type Contents = Shown;
    type OpenState = Option<HistPollState>;

    fn files(dir: Dir) -> &'static [OverlayFile] {
        const fn file(name: &'static CStr, mode: u16, only_over: bool) -> OverlayFile {
            OverlayFile {
                name,
                mode,
                only_over,
                polls: false,
                in_kernels: false,
            }
        }
        // Settings say who may open them.
        const fn of_programs(name: &'static CStr) -> OverlayFile {
            OverlayFile {
                in_kernels: true,
                ..file(name, 0, false)
            }
        }
        const HIST: OverlayFile = OverlayFile {
            polls: true,
            ..file(c"hist", 0o440, false)
        };
        match dir {
            Dir::Root => {
                const {
                    &[
                        file(c"error_log", 0o640, true),
                        file(c"show_event_triggers", 0o440, true),
                        of_programs(c"user_events_status"),
                        of_programs(c"user_events_data"),
                        file(c"hist_stats", 0o440, false),
                    ]
                }
            }
            // Instances of an earlier boot have none.
            Dir::Instance => {
                const {
                    &[
                        file(c"error_log", 0o640, true),
                        file(c"show_event_triggers", 0o440, true),
                    ]
                }
            }
            Dir::Event => {
                const {
                    &[
                        // Most events of the tracer itself have none.
                        file(c"trigger", 0o640, true),
                        HIST,
                        file(c"hist_debug", 0o440, false),
                    ]
                }
            }
            _ => &[],
        }
    }

    fn access(&self, dir: Dir, name: &CStr) -> Option<Access> {
        match (dir, name.to_bytes()) {
            (Dir::Root, b"user_events_status") => Some(self.user_events.settings.status),
            (Dir::Root, b"user_events_data") => Some(self.user_events.settings.data),
            _ => None,
        }
    }

    fn special(&self, dir: Dir, name: &CStr) -> Option<&Arc<SpecialFops>> {
        (dir == Dir::Root && name == c"user_events_data").then_some(&self.user_events_data)
    }

    fn open(&self, file: &Opened<'_>, truncate: bool) -> Result<Self::OpenState> {
        let own = OwnFile::new(file)?;
        // As in C, names of user events are no secret of the kernel.
        if !matches!(own, OwnFile::UserEventsStatus) {
            tracefs::check_lockdown()?;
        }
        match own {
            OwnFile::ErrorLog(dir) => {
                if truncate {
                    file.kernel.map(KernelFile::truncate).transpose()?;
                    self.with_error_log(dir, ErrorLog::clear)?;
                }
            }
            OwnFile::Trigger(name) => {
                if truncate {
                    // As in C, it succeeds even if it removes nothing.
                    if let Some(by) = self.engine.remove_all(name)? {
                        let _ = self.log_own(name, &Command::parse(b">"), by.as_bytes(), 0);
                    }
                }
            }
            OwnFile::ShowEventTriggers(_) | OwnFile::UserEventsStatus | OwnFile::HistStats => (),
            OwnFile::Hist(name) => {
                let event = self.engine.find_id(name)?;
                return Ok(Some(HistPollState {
                    poller: self.engine.poller(event),
                    counted: KBox::pin_init(kernel::new_mutex!(None), GFP_KERNEL)?,
                    last_read: Atomic::new(0),
                    last_reported: Atomic::new(self.engine.hits(name)?),
                }));
            }
            OwnFile::HistDebug(name) => {
                self.engine.find_id(name)?;
            }
        }
        Ok(None)
    }

    fn read(&self, file: &Opened<'_>, open: &Self::OpenState) -> Result<Shown> {
        let mut out = Text::new();
        match OwnFile::new(file)? {
            OwnFile::UserEventsStatus => out = self.user_events.status()?,
            OwnFile::ErrorLog(dir) => {
                let kernel = file.kernel.map(KernelFile::read).transpose()?;
                let kernel = kernel.as_deref().unwrap_or_default();
                self.with_error_log(dir, |log| log.render(kernel, out.as_mut()))??;
            }
            OwnFile::ShowEventTriggers(dir) => {
                self.list_all(&mut out, dir, file.kernel.ok_or(EINVAL)?)?
            }
            OwnFile::HistStats => {
                let commands = self.engine.commands();
                let reads = self.reads.load(Relaxed);
                out.format(format_args!("commands: {commands}\nreads: {reads}\n"))?;
                self.engine.for_each_source(|names, source, lost| {
                    let [system, event] = names.map(CStr::to_bytes);
                    show::event_column(&mut out, system, event)?;
                    out.format(format_args!("{source}, {lost} lost\n"))
                })?;
                self.engine.for_each_trigger(|names, n, trigger| {
                    if !trigger.spec().has_vars() {
                        return Ok(());
                    }
                    let histogram = trigger.data.histogram();
                    let [system, event] = names.map(CStr::to_bytes);
                    show::event_column(&mut out, system, event)?;
                    out.format(format_args!(
                        "hist {n}: {} unresolved, {} missed",
                        histogram.unresolved(),
                        histogram.missed()
                    ))?;
                    if !trigger.dir.is_top() {
                        out.bytes(b", instances/")?;
                        out.bytes(trigger.dir.name().to_bytes())?;
                    }
                    out.bytes(b"\n")
                })?;
            }
            OwnFile::Trigger(name) => {
                let kernel = file.kernel.map(KernelFile::read).transpose()?;
                self.list(&mut out, b"", name, kernel.as_deref().unwrap_or_default())?;
                if out.as_bytes().is_empty() {
                    out.bytes(show::NO_TRIGGERS)?;
                }
            }
            OwnFile::Hist(name) => {
                // It fails if the event is gone, also one without triggers.
                self.engine.find_id(name)?;
                let triggers = self.engine.triggers(name)?;
                let names = KernelNames::default();
                let file = HistFile::new(triggers.iter().map(|trigger| view(trigger, &names)))?;
                self.reads.add(1, Relaxed);
                if let Some(open) = open {
                    open.read(file.hits());
                }
                return Ok(Shown::Hist(file, names));
            }
            OwnFile::HistDebug(name) => {
                let triggers = self.engine.triggers(name)?;
                let names = KernelNames::default();
                let views = triggers.iter().map(|trigger| view(trigger, &names));
                show::hist_debug_file(&mut out, views)?;
            }
        }
        Ok(Shown::Text(Arc::new(out, GFP_KERNEL)?, false))
    }

    fn write(&self, file: &Opened<'_>, data: &UserBuffer) -> Result<usize> {
        match OwnFile::new(file)? {
            // As the kernel's: writes are ignored, and truncation empties it.
            OwnFile::ErrorLog(_) => Ok(0),
            OwnFile::Trigger(name) => {
                self.write_trigger(name, file.kernel, data)?;
                Ok(data.len())
            }
            OwnFile::ShowEventTriggers(_)
            | OwnFile::UserEventsStatus
            | OwnFile::HistStats
            | OwnFile::Hist(_)
            | OwnFile::HistDebug(_) => Err(EINVAL),
        }
    }

    fn poll(
        &self,
        file: &Opened<'_>,
        open: &Self::OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask> {
        match (OwnFile::new(file)?, open) {
            (OwnFile::Hist(name), Some(open)) => {
                let hits = open.poll(&self.engine, name, table)?;
                Ok(open.mask(hits))
            }
            _ => Err(EINVAL),
        }
    }

    fn map(&self, file: &Opened<'_>, vma: &VmaNew) -> Result {
        match OwnFile::new(file)? {
            OwnFile::UserEventsStatus => self.user_events.map(vma),
            _ => Err(ENODEV),
        }
    }

    fn instance_removed(&self) {
        self.engine.instance_removed();
    }
}

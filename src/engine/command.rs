// SPDX-License-Identifier: GPL-2.0

//! Carries out the commands of `trigger` files.

use super::{
    describe,
    registry::{
        Registry,
        RegistryGuard,
        Turn, //
    },
    Engine, //
};
use crate::{
    event::EventDesc,
    filter::{
        self,
        Filter,
        FilterError, //
    },
    hist::{
        spec::target::{
            SnapshotTarget,
            SynthTarget, //
        },
        AttachedHist,
        Compiled,
        Draft,
        Histogram,
        Scope, //
    },
    hook::{
        snapshot::CondSnapshot,
        switch::SwitchSettings,
        synthetic::SynthEvent,
        trigger::{
            AttachFlags,
            Condition,
            HistData,
            HistTrigger, //
        },
    },
    map::Cpus,
    rust::{
        cpu,
        event::{
            Event,
            TaskFilter, //
        },
        function,
        memory,
        snapshot,
        text, //
        tracefs::{
            EventName,
            KernelFile,
            TracingDir,
            UserBuffer, //
        },
    },
    text::{
        copy,
        Text, //
    },
    trigger::{
        count_same_oldest,
        enable::EnableCommand,
        error_log::has_entry_since,
        Command,
        Error,
        ErrorText,
        Hint,
        HintText,
        KernelTriggers,
        Trigger, //
    },
};
use core::cell::RefCell;
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        atomic::Relaxed,
        lock::mutex::MutexGuard,
        Arc, //
    },
};

impl Engine {
    /// Carries out a command that was written to the `trigger` file of an event. `kernel` is the kernel's
    /// own `trigger` file, to which `data`, the user's buffer, is passed if rhist does not implement the
    /// command. Returns what to say of a command that is accepted, but may not be what was meant.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the event is gone; the errors of the command; or those of the kernel's `write`.
    pub(crate) fn execute(
        &self,
        name: EventName<'_>,
        kernel: &KernelFile,
        command: &Command<'_>,
        data: &UserBuffer,
    ) -> Result<Option<Hint>, Failure> {
        let event = self.find(name)?;
        match command.name {
            _ if !command.is_ours() => {
                let began = text::local_clock_ns();
                let done = self.hand_on(event, kernel, command, data);
                done.map_err(|errno| match has_logged(name.dir, kernel, began, command) {
                    true => Failure::Logged(errno),
                    false => command.refused(errno).into(),
                })?;
            }
            b"hist" => return self.run_hist(name, event, kernel, command),
            _ => self.run_switch(name, event, kernel, command)?,
        }
        Ok(None)
    }

    /// Passes a command to the kernel's own file.
    fn hand_on(
        &self,
        event: Option<Event>,
        kernel: &KernelFile,
        command: &Command<'_>,
        data: &UserBuffer,
    ) -> Result {
        let switches = match event {
            Some(event) if command.remove => self.registry.lock().switches(&event),
            _ => None,
        };
        let Some(switches) = switches.filter(|switches| switches.iter().next().is_some()) else {
            return kernel.write(data);
        };
        // The position of a switch in the list is stored as the number of older kernel triggers,
        // which decreases if one of them was removed.
        let before = kernel.reopen_and_read()?;
        let before = KernelTriggers::all(&before)?;
        kernel.write(data)?;
        // The command has succeeded. Without memory only the order of the list is wrong.
        let _ = kernel.reopen_and_read().and_then(|after| {
            let after = KernelTriggers::all(&after)?;
            if before.len() > after.len() {
                let older = count_same_oldest(&before, &after);
                let switches = switches.iter();
                switches.for_each(|switch| switch.forget_older(older));
            }
            Ok(())
        });
        Ok(())
    }

    /// Carries out `enable_hist` and `disable_hist`.
    fn run_switch(
        &self,
        name: EventName<'_>,
        event: Option<Event>,
        kernel: &KernelFile,
        command: &Command<'_>,
    ) -> Result<(), Failure> {
        let switch = EnableCommand::parse(command)?;
        let target = self.registry.find(EventName {
            dir: name.dir,
            system: &c_string(switch.system)?,
            event: &c_string(switch.event)?,
        });
        let target = target.map_err(|errno| switch.no_event(errno))?;
        let mut event = event.ok_or(ENODEV)?;
        if command.remove {
            return Ok(self.registry.lock().remove_switch(&event, &target)?);
        }
        event.keep_marker(kernel)?;
        let settings = SwitchSettings {
            tasks: TaskFilter::new(&event, self.registry.instance())?,
            dir: name.dir.clone(),
            enable: switch.enable,
            target: copy(switch.target)?,
            count: switch.count()?,
            filter: match switch.filter()? {
                Some(text) => Some(condition(text, &describe(name, &event)?)?),
                None => None,
            },
            older: KernelTriggers::new(&kernel.reopen_and_read()?).count(),
        };
        let mut hooks = self.registry.lock();
        Ok(hooks.add_switch(event, target, settings)?)
    }

    /// Carries out `hist`.
    fn run_hist(
        &self,
        name: EventName<'_>,
        event: Option<Event>,
        kernel: &KernelFile,
        command: &Command<'_>,
    ) -> Result<Option<Hint>, Failure> {
        if !command.remove {
            self.commands.add(1, Relaxed);
        }
        let trigger = parse(command)?;
        let mut event = event.ok_or(ENODEV)?;
        event.keep_marker(kernel)?;
        let context = CommandContext {
            registry: &self.registry,
            dir: name.dir,
            kernel,
            turn: RefCell::new(self.registry.take_turn()),
            log: RefCell::new(KVec::new()),
        };
        let done = self.run_in_turn(&context, name, event, &trigger, command.remove);
        let mut hooks = self.registry.lock();
        if done.is_err() {
            hooks.remove_unused_helpers();
        }
        let busy = hooks.has_vars(name.dir);
        drop(hooks);
        self.registry.changed();
        name.dir.set_busy(busy);
        done.map_err(|failure| failure.after(context.log.into_inner()))
    }

    /// Adds or removes a trigger, or changes it. Everything that it does is undone if it fails, but for helper
    /// triggers. Returns what to say of a trigger that was added.
    fn run_in_turn(
        &self,
        context: &CommandContext<'_>,
        name: EventName<'_>,
        event: Event,
        trigger: &Trigger,
        remove: bool,
    ) -> Result<Option<Hint>, Failure> {
        if remove {
            // What its names refer to may have changed since it was added.
            let mut hooks = self.registry.lock();
            if let Some(shown) = hooks.shown_as(&event, trigger.command())? {
                return remove_unreferenced(&mut hooks, &event, &shown).map(|()| None);
            }
        }
        let scope = EventScope::new(context, name, &event)?;
        let draft = Draft::new(&scope, trigger, remove)?;
        let filter = filter_of(trigger, &scope.event)?;
        let name = trigger.name.map(|span| trigger.bytes(span));
        let mut hooks = self.registry.lock();
        let named = name.and_then(|name| hooks.named(name));
        let triggers = hooks.triggers(&event);
        let same = triggers.as_ref().and_then(|triggers| {
            let mut triggers = triggers.iter();
            let filter = filter.as_ref().map(|condition| &condition.text[..]);
            triggers.find(|trigger| trigger.matches(draft.spec(), filter, named.as_ref()))
        });
        if remove {
            // As in C, removing a trigger that does not exist is no error.
            return match same {
                Some(same) => remove_unreferenced(&mut hooks, &event, same).map(|()| None),
                None => Ok(None),
            };
        }
        drop(hooks);
        let mismatch = named
            .as_ref()
            .is_some_and(|named| !named.histogram().spec().matches(draft.spec()));
        // The first trigger of a name may equal one without a name.
        let same = same.filter(|_| (name.is_none() || named.is_some()) && !mismatch);
        if let Some(same) = same {
            if trigger.pause.is_some() || trigger.cont.is_some() {
                same.pause(trigger.pause.is_some());
                return Ok(None);
            }
            if trigger.clear.is_some() {
                same.data.clear(|old| empty_again(trigger, old))?;
                return Ok(None);
            }
        }
        let code = Compiled::new(draft)?;
        if let (Some(span), true) = (trigger.name, mismatch) {
            return Err(trigger.error(ErrorText::NamedMismatch, span).into());
        }
        if same.is_some() {
            return Err(Error::new(ErrorText::TriggerEexist, 0).into());
        }
        if trigger.cont.is_some() || trigger.clear.is_some() {
            return Err(Error::new(ErrorText::TriggerEnoentClear, 0).into());
        }
        code.spec.check_clock(trigger)?;
        let data = match named {
            Some(named) => {
                if self.registry.lock().closes_circle(&code.spec, &named)? {
                    let span = trigger.name.ok_or(EINVAL)?;
                    return Err(trigger.own_error(HintText::NamedCircle, span).into());
                }
                named
            }
            None => hist_data(trigger, &code, name)?,
        };
        let paused = trigger.pause.is_some();
        attach(
            &self.registry,
            event,
            data,
            code,
            filter,
            AttachFlags {
                paused,
                helper: false,
            },
        )?;
        Ok(trigger.note())
    }
}

/// What a command and the triggers that it makes share.
struct CommandContext<'a> {
    registry: &'a Registry,
    dir: &'a TracingDir,
    /// An open file of tracefs.
    kernel: &'a KernelFile,
    turn: RefCell<MutexGuard<'a, Turn>>,
    /// Errors after which the command was continued.
    log: RefCell<KVec<Error>>,
}

/// Where the names in a trigger of an event are looked up.
struct EventScope<'a, 'b> {
    event: EventDesc,
    /// The event in its tracing directory.
    own: &'a Event,
    context: &'a CommandContext<'b>,
}

impl<'a, 'b> EventScope<'a, 'b> {
    fn new(context: &'a CommandContext<'b>, name: EventName<'_>, own: &'a Event) -> Result<Self> {
        Ok(Self {
            event: describe(name, own)?,
            own,
            context,
        })
    }

    /// Finds the event `system:name` in the tracing directory. `None` if there is none, or it cannot be enabled.
    fn find(&self, system: &[u8], name: &[u8]) -> Result<Option<Event>> {
        let found = self.context.registry.find(EventName {
            dir: self.context.dir,
            system: &c_string(system)?,
            event: &c_string(name)?,
        });
        match found {
            Ok(event) => Ok(Some(event)),
            Err(ENOMEM) => Err(ENOMEM),
            Err(_) => Ok(None),
        }
    }
}

impl Scope for EventScope<'_, '_> {
    fn event(&self) -> &EventDesc {
        &self.event
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool> {
        self.context
            .registry
            .knows(self.context.dir, [system, name])
    }

    fn own_histograms(&self) -> Result<KVec<AttachedHist>> {
        self.context.registry.lock().histograms(self.own)
    }

    fn histograms(&self, system: &[u8], name: &[u8]) -> Result<Option<KVec<AttachedHist>>> {
        match self.find(system, name)? {
            Some(event) => self.context.registry.lock().histograms(&event).map(Some),
            None => Ok(None),
        }
    }

    fn all_histograms(&self) -> Result<KVec<(usize, Arc<Histogram>)>> {
        self.context
            .registry
            .lock()
            .all_histograms(self.context.dir)
    }

    fn synth_event(&self, name: &[u8]) -> Result<Option<KBox<dyn SynthTarget>>> {
        let scratch = self.context.turn.borrow_mut().scratch()?;
        let instance = self.context.registry.instance();
        let event = SynthEvent::find(&c_string(name)?, scratch, instance)?;
        Ok(match event {
            Some(event) => Some(KBox::new(event, GFP_KERNEL)?),
            None => None,
        })
    }

    fn cond_snapshot(&self) -> Result<KBox<dyn SnapshotTarget>> {
        let snapshot = snapshot::CondSnapshot::new(self.context.dir, self.context.kernel)?;
        Ok(KBox::new(CondSnapshot(snapshot), GFP_KERNEL)?)
    }

    #[inline(never)]
    fn add_helper(
        &self,
        system: &[u8],
        name: &[u8],
        params: &[u8],
        command: &[u8],
    ) -> Result<(), Error> {
        let [c_system, c_name] = [c_string(system)?, c_string(name)?];
        let event = self.find(system, name)?.ok_or(ENODEV)?;
        let name = EventName {
            dir: self.context.dir,
            system: &c_system,
            event: &c_name,
        };
        let scope = EventScope::new(self.context, name, &event)?;
        let trigger = parse_for(params, command)?;
        let draft = Draft::new(&scope, &trigger, false)?;
        let filter = filter_of(&trigger, &scope.event).map_err(Failure::error)?;
        let code = Compiled::new(draft)?;
        let data = hist_data(&trigger, &code, None)?;
        Ok(attach(
            self.context.registry,
            event,
            data,
            code,
            filter,
            AttachFlags {
                paused: false,
                helper: true,
            },
        )?)
    }

    fn log(&self, error: Error) {
        // Without memory it is missing from the log.
        let _ = self.context.log.borrow_mut().push(error, GFP_KERNEL);
    }
}

// The kernel stack has 16 KiB, and fields are checked recursively. So large objects are built in functions
// that are not inlined, and are on the stack only until they are moved to the heap.

/// Parses the parameters of a command.
#[inline(never)]
fn parse(command: &Command<'_>) -> Result<KBox<Trigger>, Error> {
    Ok(KBox::new(Trigger::parse(command.hist()?)?, GFP_KERNEL)?)
}

/// Parses the parameters of a helper trigger.
#[inline(never)]
fn parse_for(params: &[u8], command: &[u8]) -> Result<KBox<Trigger>, Error> {
    Ok(KBox::new(Trigger::parse_for(params, command)?, GFP_KERNEL)?)
}

/// Removes a trigger of `event`. Fails with `EBUSY` if another one refers to its variables.
fn remove_unreferenced(
    hooks: &mut RegistryGuard<'_>,
    event: &Event,
    trigger: &HistTrigger,
) -> Result<(), Failure> {
    if let Some(referrer) = hooks.referrer_of(trigger)? {
        return Err(Failure::Referenced(referrer));
    }
    Ok(hooks.remove(event, trigger)?)
}

/// Adds a trigger to `event`.
#[inline(never)]
fn attach(
    registry: &Registry,
    event: Event,
    data: Arc<HistData>,
    code: Compiled,
    filter: Option<Condition>,
    flags: AttachFlags,
) -> Result {
    let dir = event.dir().clone();
    let tasks = TaskFilter::new(&event, registry.instance())?;
    let trigger = HistTrigger::new(dir, data, code, filter, tasks, flags);
    registry.lock().add(event, trigger)
}

/// Allocates an empty histogram and its name.
#[inline(never)]
fn hist_data(
    trigger: &Trigger,
    code: &Compiled,
    name: Option<&[u8]>,
) -> Result<Arc<HistData>, Error> {
    let histogram = allocate(trigger, |seed, cpus, max_bytes| {
        Histogram::new(
            code.spec.clone(),
            code.program.clone(),
            seed,
            cpus,
            max_bytes,
        )
    })?;
    Ok(HistData::new(histogram, name.map(copy).transpose()?)?)
}

/// Allocates an empty histogram to take the place of `old`, for the command `trigger`.
#[inline(never)]
fn empty_again(trigger: &Trigger, old: &Histogram) -> Result<Arc<Histogram>, Error> {
    allocate(trigger, |seed, cpus, max_bytes| {
        old.new_empty(seed, cpus, max_bytes)
    })
}

/// Allocates a histogram with `new`, which gets a random seed, the CPUs and a limit in bytes. It may take half of the
/// memory that is available: an allocation of all of it would have the kernel end processes.
fn allocate(
    trigger: &Trigger,
    new: impl FnOnce(u64, Cpus, usize) -> Result<Arc<Histogram>>,
) -> Result<Arc<Histogram>, Error> {
    let cpus = Cpus {
        count: cpu::count(),
        own: cpu::online_end(),
        node: cpu::node,
    };
    let max_bytes = memory::available() / 2;
    new(text::random(), cpus, max_bytes).map_err(|errno| match &trigger.size {
        Some(size) if errno == ENOMEM => trigger.own_error(HintText::TooLarge, size.text),
        None if errno == ENOMEM => Error::own(HintText::TooLarge, 0),
        _ => errno.into(),
    })
}

/// Why a command failed.
pub(crate) enum Failure {
    /// The command is invalid, or could not be carried out. With errors that are logged before, after which it was
    /// continued.
    Command(Error, KVec<Error>),
    /// Another trigger refers to the one that was to be removed: `EBUSY`, and which.
    Referenced(Text),
    /// The kernel has refused the command, and has logged why.
    Logged(kernel::error::Error),
    /// The filter is invalid. With its text, for the error log.
    Filter(FilterError, KVec<u8>),
}

impl Failure {
    /// The error of a command that another one has carried out.
    fn error(self) -> Error {
        match self {
            Self::Command(error, _) => error,
            Self::Referenced(_) => EBUSY.into(),
            Self::Logged(errno) => errno.into(),
            Self::Filter(error, _) => error.errno.into(),
        }
    }

    /// The same, with errors that are logged before.
    fn after(self, errors: KVec<Error>) -> Self {
        match self {
            Self::Command(error, _) => Self::Command(error, errors),
            Self::Referenced(_) | Self::Logged(_) | Self::Filter(..) => self,
        }
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Command(error.into(), KVec::new())
    }
}

/// Whether the kernel has logged an error of a command in a tracing directory since `time`, in nanoseconds of the local
/// clock. False if its log cannot be read.
fn has_logged(dir: &TracingDir, open_file: &KernelFile, time: u64, command: &Command<'_>) -> bool {
    let log = open_file.open_other_for_reading(dir, &[c"error_log"]);
    let log = log.and_then(|log| log.read());
    // What the kernel logs of these commands is the filter.
    let params = command.params.unwrap_or(&[]);
    log.is_ok_and(|log| has_entry_since(&log, time, params))
}

fn c_string(bytes: &[u8]) -> Result<CString> {
    let mut copy = copy(bytes)?;
    copy.push(0, GFP_KERNEL)?;
    CString::try_from(CStr::from_bytes_until_nul(&copy).map_err(|_| EINVAL)?).map_err(|_| ENOMEM)
}

/// Compiles the filter of a trigger, if it has one.
#[inline(never)]
fn filter_of(trigger: &Trigger, desc: &EventDesc) -> Result<Option<Condition>, Failure> {
    let filter = trigger.filter.as_ref();
    filter
        .map(|filter| condition(trigger.bytes(filter.text), desc))
        .transpose()
}

/// Compiles the filter of a command.
fn condition(text: &[u8], desc: &EventDesc) -> Result<Condition, Failure> {
    let text = copy(text)?;
    match Filter::parse(&text, desc, cpu::count(), &KernelFunctions) {
        Ok(filter) => Ok(Condition { filter, text }),
        Err(error) => Err(Failure::Filter(error, text)),
    }
}

/// Function lookup in the running kernel.
struct KernelFunctions;

impl filter::Symbols for KernelFunctions {
    fn address(&self, name: &[u8]) -> Option<usize> {
        function::address(&c_string(name).ok()?)
    }

    fn function(&self, address: usize) -> Option<(usize, usize)> {
        function::around(address)
    }
}

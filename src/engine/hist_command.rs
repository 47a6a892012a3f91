// SPDX-License-Identifier: GPL-2.0

//! Executes `hist` commands: adds, changes and removes triggers.

use super::{
    failure::Failure,
    host::{
        Host,
        NewTrigger, //
    },
    triggers::{
        attached,
        is_shown_as,
        Triggers, //
    },
};
use crate::{
    event::{
        EventDesc,
        GroupPlace, //
    },
    filter::{
        Filter,
        Symbols, //
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
        Scope,
        Setup,
        Tenancy, //
    },
    hook::trigger::{
        AttachFlags,
        Condition,
        HistData,
        HistTrigger, //
    },
    text::copy,
    trigger::{
        Error,
        ErrorText,
        Hint,
        HintText,
        Trigger, //
    },
};
use core::cell::RefCell;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Adds or removes a trigger of `event`, or changes it. If it fails, all its changes are undone,
/// except helper triggers. Returns a hint for a trigger that was added.
///
/// # Errors
///
/// Includes errors after which the command was continued.
pub fn run<H: Host>(
    host: &H,
    event: H::Event,
    trigger: &Trigger,
    remove: bool,
) -> Result<Option<Hint>, Failure> {
    let log = RefCell::new(KVec::new());
    let done = run_logging(host, event, trigger, remove, &log);
    done.map_err(|failure| failure.after(log.into_inner()))
}

fn run_logging<H: Host>(
    host: &H,
    event: H::Event,
    trigger: &Trigger,
    remove: bool,
    log: &RefCell<KVec<Error>>,
) -> Result<Option<Hint>, Failure> {
    if remove {
        // The names in it may refer to other things since it was added.
        for shown in &host.triggers(&event)? {
            if is_shown_as(shown, trigger.command())? {
                return remove_unreferenced(host, &event, shown).map(|()| None);
            }
        }
    }
    let scope = EventScope::new(host, &event, log)?;
    let draft = Draft::new(&scope, trigger, remove)?;
    let symbols = host.symbols();
    let filter = match remove {
        // It may have gone since the trigger was added: only the text is compared.
        true => filter_of(trigger, &scope.desc, host, &AnyGroup(symbols))?,
        false => filter_of(trigger, &scope.desc, host, symbols)?,
    };
    let name = trigger.name.map(|span| trigger.bytes(span));
    let named = name.and_then(|name| host.lock().named(name));
    let triggers = host.triggers(&event)?;
    let filter_text = filter.as_ref().map(|condition| &condition.text[..]);
    let same = triggers
        .iter()
        .find(|other| other.matches(draft.spec(), filter_text, named.as_ref()));
    if remove {
        // As in C, removing a trigger that does not exist succeeds.
        return match same {
            Some(same) => remove_unreferenced(host, &event, same).map(|()| None),
            None => Ok(None),
        };
    }
    let mismatch = named
        .as_ref()
        .is_some_and(|named| !named.histogram().spec().can_share(draft.spec()));
    // The first trigger of a name may equal an unnamed one.
    let same = same.filter(|_| (name.is_none() || named.is_some()) && !mismatch);
    if let Some(same) = same {
        if trigger.pause.is_some() || trigger.cont.is_some() {
            same.pause(trigger.pause.is_some());
            return Ok(None);
        }
        if trigger.clear.is_some() {
            same.data.clear(|old| empty_again(host, trigger, old))?;
            return Ok(None);
        }
    }
    let compiled = Compiled::new(draft)?;
    if let (Some(span), Some(named), true) = (trigger.name, &named, mismatch) {
        let error = trigger.error(ErrorText::NamedMismatch, span);
        let error = match named.histogram().spec().allows_room_of(&compiled.spec) {
            true => error,
            false => error.hinted(HintText::NamedRoom, error.caret),
        };
        return Err(error.into());
    }
    if same.is_some() {
        return Err(Error::new(ErrorText::TriggerEexist, 0).into());
    }
    if trigger.cont.is_some() || trigger.clear.is_some() {
        return Err(Error::new(ErrorText::TriggerEnoentClear, 0).into());
    }
    compiled.spec.check_clock(trigger)?;
    let data = match named {
        Some(named) => {
            if host.lock().closes_circle(&compiled.spec, &named)? {
                let span = trigger.name.ok_or(EINVAL)?;
                return Err(trigger.own_error(HintText::NamedCircle, span).into());
            }
            named
        }
        None => hist_data(host, trigger, &compiled, name)?,
    };
    let flags = AttachFlags {
        paused: trigger.pause.is_some(),
        helper: false,
    };
    drop(scope);
    add(host, event, data, compiled, filter, flags)?;
    Ok(trigger.note())
}

/// The environment in which the names of an event's trigger are looked up.
pub struct EventScope<'a, H: Host> {
    desc: Arc<EventDesc>,
    /// The event of the trigger.
    own: &'a H::Event,
    host: &'a H,
    /// Errors after which the command was continued.
    log: &'a RefCell<KVec<Error>>,
}

impl<'a, H: Host> EventScope<'a, H> {
    /// The environment of triggers of `event`. Errors after which its command is continued go to
    /// `log`. Fails with `ENOMEM`.
    pub fn new(host: &'a H, event: &'a H::Event, log: &'a RefCell<KVec<Error>>) -> Result<Self> {
        Ok(Self {
            desc: host.describe(event)?,
            own: event,
            host,
            log,
        })
    }
}

impl<H: Host> Scope for EventScope<'_, H> {
    fn event(&self) -> &EventDesc {
        &self.desc
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool> {
        self.host.has_event(system, name)
    }

    fn own_histograms(&self) -> Result<KVec<AttachedHist>> {
        attached(self.host.triggers(self.own)?.iter())
    }

    fn histograms(&self, system: &[u8], name: &[u8]) -> Result<Option<KVec<AttachedHist>>> {
        match self.host.find(system, name)? {
            Some(event) => attached(self.host.triggers(&event)?.iter()).map(Some),
            None => Ok(None),
        }
    }

    fn all_histograms(&self) -> Result<KVec<(usize, Arc<Histogram>)>> {
        self.host.lock().histograms(|site| self.host.is_here(site))
    }

    fn synth_event(&self, name: &[u8]) -> Result<Option<KBox<dyn SynthTarget>>> {
        self.host.synth_event(name)
    }

    fn cond_snapshot(&self) -> Result<KBox<dyn SnapshotTarget>> {
        self.host.cond_snapshot()
    }

    #[inline(never)]
    fn add_helper(
        &self,
        system: &[u8],
        name: &[u8],
        params: &[u8],
        command: &[u8],
    ) -> Result<(), Error> {
        let event = self.host.find(system, name)?.ok_or(ENODEV)?;
        let trigger = parse_for(params, command)?;
        let scope = EventScope::new(self.host, &event, self.log)?;
        let draft = Draft::new(&scope, &trigger, false)?;
        let symbols = self.host.symbols();
        let filter = filter_of(&trigger, &scope.desc, self.host, symbols);
        let filter = filter.map_err(Failure::error)?;
        let compiled = Compiled::new(draft)?;
        let data = hist_data(self.host, &trigger, &compiled, None)?;
        let flags = AttachFlags {
            paused: false,
            helper: true,
        };
        drop(scope);
        Ok(add(self.host, event, data, compiled, filter, flags)?)
    }

    fn log(&self, error: Error) {
        // If the allocation fails, the error is missing from the log.
        let _ = self.log.borrow_mut().push(error, GFP_KERNEL);
    }
}

// The kernel stack has 16 KiB, and fields are checked recursively. So large objects are built in
// functions that are not inlined, and leave the stack as soon as they are moved to the heap.

/// Parses the parameters of a helper trigger.
#[inline(never)]
fn parse_for(params: &[u8], command: &[u8]) -> Result<KBox<Trigger>, Error> {
    Ok(KBox::new(Trigger::parse_for(params, command)?, GFP_KERNEL)?)
}

/// Removes a trigger of `event`. Fails with `EBUSY` if another one refers to its variables.
fn remove_unreferenced<H: Host>(
    host: &H,
    event: &H::Event,
    trigger: &HistTrigger<H::Site>,
) -> Result<(), Failure> {
    if let Some(referrer) = host.lock().referrer_text(trigger)? {
        return Err(Failure::Referenced(referrer));
    }
    Ok(host.remove(event, trigger)?)
}

/// Adds a trigger to `event`.
#[inline(never)]
fn add<H: Host>(
    host: &H,
    event: H::Event,
    data: Arc<HistData>,
    compiled: Compiled,
    filter: Option<Condition>,
    flags: AttachFlags,
) -> Result {
    let new = NewTrigger {
        data,
        compiled,
        filter,
        flags,
    };
    host.add(event, new)
}

/// Allocates an empty histogram and its name, and has it tended.
#[inline(never)]
fn hist_data<H: Host>(
    host: &H,
    trigger: &Trigger,
    compiled: &Compiled,
    name: Option<&[u8]>,
) -> Result<Arc<HistData>, Error> {
    let (spec, code) = (compiled.spec.clone(), compiled.code.clone());
    let (histogram, tenancy) = tended(host, trigger, |setup| Histogram::new(spec, code, setup))?;
    let name = name.map(copy).transpose()?;
    Ok(HistData::new(histogram, tenancy, name)?)
}

/// Allocates an empty histogram to replace `old`, for the command `trigger`, and has it tended.
#[inline(never)]
fn empty_again<H: Host>(
    host: &H,
    trigger: &Trigger,
    old: &Histogram,
) -> Result<(Arc<Histogram>, Option<Tenancy>), Error> {
    tended(host, trigger, |setup| old.new_empty(setup))
}

/// Makes a histogram for the command `trigger`, and has it tended.
fn tended<H: Host>(
    host: &H,
    trigger: &Trigger,
    new: impl FnOnce(&Setup<'_>) -> Result<Arc<Histogram>>,
) -> Result<(Arc<Histogram>, Option<Tenancy>), Error> {
    let made = new(&Setup {
        seed: host.random(),
        cpus: host.cpus(),
        clocks: host.clocks(),
        max_bytes: H::max_map_bytes,
        group_nodes: host.group_nodes(),
        waker: &|| host.waker(),
    });
    let tended = made.and_then(|histogram| {
        let tenancy = host.tend(&histogram)?;
        Ok((histogram, tenancy))
    });
    tended.map_err(|errno| not_allocated(trigger, errno))
}

/// The error for a histogram that could not be allocated.
fn not_allocated(trigger: &Trigger, errno: kernel::error::Error) -> Error {
    match &trigger.size {
        Some(size) if errno == ENOMEM => trigger.own_error(HintText::TooLarge, size.text),
        Some(size) if errno == E2BIG => trigger.own_error(HintText::TooWide, size.text),
        None if errno == ENOMEM => Error::own(HintText::TooLarge, 0),
        _ => errno.into(),
    }
}

/// Compiles the filter of a trigger, if it has one.
#[inline(never)]
fn filter_of<H: Host>(
    trigger: &Trigger,
    desc: &EventDesc,
    host: &H,
    symbols: &dyn Symbols,
) -> Result<Option<Condition>, Failure> {
    let filter = trigger.filter.as_ref();
    let cpus = host.cpus().count;
    filter
        .map(|filter| condition(trigger.bytes(filter.text), desc, cpus, symbols))
        .transpose()
}

/// Symbols, and any control group.
struct AnyGroup<'a>(&'a dyn Symbols);

impl Symbols for AnyGroup<'_> {
    fn address(&self, name: &[u8]) -> Option<usize> {
        self.0.address(name)
    }

    fn function(&self, address: usize) -> Option<(usize, usize)> {
        self.0.function(address)
    }

    fn group(&self, _: &[u8]) -> Option<GroupPlace> {
        Some(GroupPlace { id: 0, level: 0 })
    }
}

/// Compiles the filter of a command, on a machine with `cpus` CPUs.
pub(super) fn condition(
    text: &[u8],
    desc: &EventDesc,
    cpus: usize,
    symbols: &dyn Symbols,
) -> Result<Condition, Failure> {
    let text = copy(text)?;
    match Filter::parse(&text, desc, cpus, symbols) {
        Ok(filter) => Ok(Condition { filter, text }),
        Err(error) => Err(Failure::Filter(error, text)),
    }
}

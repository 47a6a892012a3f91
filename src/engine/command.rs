// SPDX-License-Identifier: GPL-2.0

//! Carries out the commands of `trigger` files.

use super::describe;
use super::registry::Registry;
use super::Engine;
use crate::event::EventDesc;
use crate::filter;
use crate::filter::Filter;
use crate::filter::FilterError;
use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::function;
use crate::ftrace::memory;
use crate::ftrace::text;
use crate::ftrace::tracefs::EventName;
use crate::ftrace::tracefs::KernelFile;
use crate::ftrace::tracefs::TracingDir;
use crate::ftrace::tracefs::UserBuffer;
use crate::hist::Histogram;
use crate::hist::Plan;
use crate::hist::Scope;
use crate::hook::switch::SwitchSettings;
use crate::hook::trigger::Condition;
use crate::hook::trigger::HistData;
use crate::hook::trigger::HistTrigger;
use crate::map::Cpus;
use crate::text::copy;
use crate::trigger::count_same_oldest;
use crate::trigger::enable::EnableCommand;
use crate::trigger::Command;
use crate::trigger::Error;
use crate::trigger::ErrorText;
use crate::trigger::KernelTriggers;
use crate::trigger::Trigger;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;

impl Engine {
    /// Carries out a command that was written to the `trigger` file of an event. `kernel` is the kernel's
    /// own `trigger` file, to which `data`, the user's buffer, is passed if rhist does not implement the
    /// command.
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
    ) -> Result<(), Failure> {
        let event = self.find(name)?;
        match command.name {
            _ if !command.is_ours() => Ok(self.hand_on(event, kernel, command, data)?),
            b"hist" => self.run_hist(name, event, kernel, command),
            _ => self.run_switch(name, event, kernel, command),
        }
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
        })?;
        let mut event = event.ok_or(ENODEV)?;
        if command.remove {
            return Ok(self.registry.lock().remove_switch(&event, &target)?);
        }
        event.keep_marker(kernel)?;
        let settings = SwitchSettings {
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
    ) -> Result<(), Failure> {
        if !command.remove {
            self.commands.add(1, Relaxed);
        }
        let trigger = parse(command)?;
        let mut event = event.ok_or(ENODEV)?;
        let scope = EventScope {
            event: describe(name, &event)?,
            registry: &self.registry,
            dir: name.dir,
        };
        // Errors are reported before a construct that is only unsupported.
        let plan = match plan(&scope, &trigger) {
            Err(error) if !error.is_refusal() => return Err(error.into()),
            plan => plan,
        };
        let filter = match trigger.filter {
            Some(filter) => Some(condition(trigger.bytes(filter.text), &scope.event)?),
            None => None,
        };
        let plan = plan?;
        let name = trigger.name.map(|span| trigger.bytes(span));
        event.keep_marker(kernel)?;

        let mut new = None;
        loop {
            let mut hooks = self.registry.lock();
            let named = name.and_then(|name| hooks.named(name));
            let triggers = hooks.triggers(&event);
            let same = triggers.as_ref().and_then(|triggers| {
                let mut triggers = triggers.iter();
                let filter = filter.as_ref().map(|condition| &condition.text[..]);
                triggers.find(|trigger| trigger.matches(&plan, filter, named.as_ref()))
            });
            if command.remove {
                // As in C, removing a trigger that does not exist is no error.
                return match same {
                    Some(same) => Ok(hooks.remove(&event, same)?),
                    None => Ok(()),
                };
            }
            if let (Some(span), Some(named)) = (trigger.name, &named) {
                if !named.histogram().plan().matches(&plan) {
                    return Err(trigger.error(ErrorText::NamedMismatch, span).into());
                }
            }
            // The first trigger of a name may equal one without a name.
            let same = same.filter(|_| name.is_none() || named.is_some());
            if let Some(same) = same {
                if trigger.pause.is_some() {
                    same.pause(true);
                } else if trigger.cont.is_some() {
                    same.pause(false);
                } else if trigger.clear.is_some() {
                    // Unlocked, because it allocates and waits for a grace period.
                    drop(hooks);
                    same.data.clear(|plan| histogram(&trigger, plan))?;
                } else {
                    return Err(Error::new(ErrorText::TriggerEexist, 0).into());
                }
                return Ok(());
            }
            if trigger.cont.is_some() || trigger.clear.is_some() {
                return Err(Error::new(ErrorText::TriggerEnoentClear, 0).into());
            }
            plan.check_clock(&trigger)?;
            let Some(data) = named.or_else(|| new.take()) else {
                // Allocated without the lock, because it is large. The lookups above are repeated
                // then.
                drop(hooks);
                new = Some(hist_data(&trigger, &plan, name)?);
                continue;
            };
            let paused = trigger.pause.is_some();
            let dir = event.dir().clone();
            let trigger = HistTrigger::new(dir, data, plan, filter, paused);
            return Ok(hooks.add(event, trigger)?);
        }
    }
}

/// Where the names in a trigger of an event are looked up.
struct EventScope<'a> {
    event: EventDesc,
    registry: &'a Registry,
    dir: &'a TracingDir,
}

impl Scope for EventScope<'_> {
    fn event(&self) -> &EventDesc {
        &self.event
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool> {
        self.registry.knows(self.dir, [system, name])
    }
}

// The kernel stack has 16 KiB, and fields are checked recursively. So large objects are built in functions
// that are not inlined, and are on the stack only until they are moved to the heap.

/// Parses the parameters of a command.
#[inline(never)]
fn parse(command: &Command<'_>) -> Result<KBox<Trigger>, Error> {
    Ok(KBox::new(Trigger::parse(command.hist()?)?, GFP_KERNEL)?)
}

/// Builds the plan of a trigger for an event.
#[inline(never)]
fn plan(scope: &EventScope<'_>, trigger: &Trigger) -> Result<Arc<Plan>, Error> {
    Ok(Arc::new(Plan::new(scope, trigger)?, GFP_KERNEL)?)
}

/// Allocates an empty histogram and its name.
#[inline(never)]
fn hist_data(
    trigger: &Trigger,
    plan: &Arc<Plan>,
    name: Option<&[u8]>,
) -> Result<Arc<HistData>, Error> {
    let histogram = histogram(trigger, plan.clone())?;
    Ok(HistData::new(histogram, name.map(copy).transpose()?)?)
}

/// Allocates an empty histogram with `plan`, that of `trigger`. It may take half of the memory that is available: an
/// allocation of all of it would have the kernel end processes.
fn histogram(trigger: &Trigger, plan: Arc<Plan>) -> Result<Histogram, Error> {
    let cpus = Cpus {
        count: cpu::count(),
        own: cpu::online_end(),
        node: cpu::node,
    };
    let room = memory::available() / 2;
    Histogram::from_plan(plan, text::random(), cpus, room).map_err(|errno| match &trigger.size {
        Some(size) if errno == ENOMEM => trigger.error(ErrorText::TooLarge, size.text),
        None if errno == ENOMEM => Error::new(ErrorText::TooLarge, 0),
        _ => errno.into(),
    })
}

/// Why a command failed.
pub(crate) enum Failure {
    /// The command is invalid, or could not be carried out.
    Command(Error),
    /// The filter is invalid. With its text, for the error log.
    Filter(FilterError, KVec<u8>),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Command(error.into())
    }
}

fn c_string(bytes: &[u8]) -> Result<CString> {
    let mut copy = copy(bytes)?;
    copy.push(0, GFP_KERNEL)?;
    CString::try_from(CStr::from_bytes_until_nul(&copy).map_err(|_| EINVAL)?).map_err(|_| ENOMEM)
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

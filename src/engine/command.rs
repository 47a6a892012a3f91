// SPDX-License-Identifier: GPL-2.0

//! Executes the commands of `trigger` files.

use super::{
    failure::Failure,
    hist_command,
    kernel_host::{
        c_string,
        describe,
        KernelFunctions,
        KernelHost,
        NamedEvent, //
    },
    triggers::Triggers,
    Engine, //
};
use crate::{
    hook::switch::SwitchSettings,
    rust::{
        cpu,
        event::{
            Event,
            TaskFilter, //
        },
        text, //
        tracefs::{
            EventName,
            KernelFile,
            TracingDir,
            UserBuffer, //
        },
    },
    text::copy,
    trigger::{
        count_same_oldest,
        enable::EnableCommand,
        error_log::has_entry_since,
        Command,
        Error,
        Hint,
        KernelTriggers,
        Trigger, //
    },
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

impl Engine {
    /// Executes a command that was written to the `trigger` file of an event. `kernel` is the
    /// kernel's own `trigger` file; it gets `data`, the user's buffer, if rhist does not implement
    /// the command. Returns a hint if a command is accepted, but may not have the intended meaning.
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
                let done = self.forward_to_kernel(event, kernel, command, data);
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
    fn forward_to_kernel(
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
        // The command has succeeded: if an allocation fails here, only the order of the list is
        // wrong.
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

    /// Executes `enable_hist` and `disable_hist`.
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
                Some(text) => {
                    let desc = describe([name.system, name.event], &event)?;
                    let cpus = cpu::count();
                    Some(hist_command::condition(
                        text,
                        &desc,
                        cpus,
                        &KernelFunctions,
                    )?)
                }
                None => None,
            },
            older: KernelTriggers::new(&kernel.reopen_and_read()?).count(),
        };
        let mut hooks = self.registry.lock();
        Ok(hooks.add_switch(event, target, settings)?)
    }

    /// Executes `hist`.
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
        let host = KernelHost::new(&self.registry, name.dir, kernel);
        let event = NamedEvent::new(event, name)?;
        let done = hist_command::run(&host, event, &trigger, command.remove);
        let mut hooks = self.registry.lock();
        if done.is_err() {
            hooks.remove_unused_helpers();
        }
        hooks.update_readers(&self.registry.readers);
        let busy = hooks.has_vars(|site| site.dir == *name.dir);
        drop(hooks);
        self.registry.changed();
        name.dir.set_busy(busy);
        done
    }
}

/// Parses the parameters of a command.
// Not inlined, as it needs much of the kernel's stack.
#[inline(never)]
fn parse(command: &Command<'_>) -> Result<KBox<Trigger>, Error> {
    Ok(KBox::new(Trigger::parse(command.hist()?)?, GFP_KERNEL)?)
}

/// Returns whether the kernel has logged an error of a command in a tracing directory since `time`,
/// in nanoseconds of the local clock. False if its log cannot be read.
fn has_logged(dir: &TracingDir, open_file: &KernelFile, time: u64, command: &Command<'_>) -> bool {
    let log = open_file.open_other_for_reading(dir, &[c"error_log"]);
    let log = log.and_then(|log| log.read());
    // For these commands, the kernel logs the filter as the command.
    let params = command.params.unwrap_or(&[]);
    log.is_ok_and(|log| has_entry_since(&log, time, params))
}

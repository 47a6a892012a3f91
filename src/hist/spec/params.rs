// SPDX-License-Identifier: GPL-2.0

//! Resolves the parameters of actions.

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    action::Track,
    draft::Draft,
    field::{
        Function,
        HistField, //
    },
    field_var::FieldVar,
    scope::EventVar,
    target::{
        SynthField,
        SynthTarget,
        Target,
        Targets, //
    },
    variable::{
        ValueKind,
        VarRef,
        Variable, //
    },
};
use crate::{
    limits::{
        self,
        VARS_MAX, //
    },
    text::{
        copy,
        Text, //
    },
    trigger::{
        self,
        Act,
        ActionHandler,
        Error,
        ErrorText,
        Expr,
        HintText,
        Param,
        Place,
        Span, //
    },
};

// Functions that are not on the way to another event's histogram are out of line: creating a helper
// trigger there recurses, and the kernel's stack is small.

impl<'a> Draft<'a> {
    /// Resolves the actions (`create_actions()`). Returns their targets.
    ///
    /// # Errors
    ///
    /// See [`Draft::new`].
    pub fn resolve_actions(&mut self) -> Result<Targets, Error> {
        let trigger = self.trigger;
        let mut targets = KVec::new();
        for (index, action) in trigger.actions.items().iter().enumerate() {
            match action.handler {
                ActionHandler::OnMatch { .. } => (),
                ActionHandler::OnMax { var } => self.track(index, var, b"__max")?,
                ActionHandler::OnChange { var } => self.track(index, var, b"__change")?,
            }
            let target = match action.act.as_ref().map_err(|&error| error)? {
                Act::Save { params, .. } => {
                    self.save(params)?;
                    Target::Save
                }
                Act::Snapshot { name } => {
                    let busy = || trigger.own_error(HintText::SnapshotBusy, *name);
                    let snapshot = self.scope.cond_snapshot();
                    Target::Snapshot(snapshot.map_err(|errno| match errno {
                        EBUSY => busy(),
                        _ => errno.into(),
                    })?)
                }
                Act::Trace { event, params, .. } => {
                    let (slots, synth_event) = self.trace(action, *event, params)?;
                    self.spec.actions[index].slots = slots;
                    Target::Trace(synth_event)
                }
            };
            targets.push(target, GFP_KERNEL)?;
        }
        match &trigger.clauses.ustack {
            // save() may be the only one that takes such stacks.
            Some(ustack) if !self.spec.takes_user_stacks() => {
                Err(trigger.own_error(HintText::NoUserStack, ustack.text))
            }
            _ => Ok(Targets(targets)),
        }
    }

    /// Resolves the variable that `onmax()` or `onchange()`, the action at `index`, compares
    /// (`track_data_create()`). Its last value is kept in the variable `name`.
    #[inline(never)]
    fn track(&mut self, index: usize, var: Span, name: &[u8]) -> Result<(), Error> {
        let trigger = self.trigger;
        let Some(tracked) = trigger.bytes(var).strip_prefix(b"$") else {
            return Err(trigger.error(ErrorText::OnxNotVar, var));
        };
        let Some(at) = self.spec.find_var(tracked) else {
            return Err(trigger.error_at(ErrorText::OnxVarNotFound, tracked));
        };
        // C would compare the addresses of strings.
        if self.spec.vars[at].kind() != ValueKind::Number {
            return Err(trigger.error_at(ErrorText::InvalidStrOperand, tracked));
        }
        let too_many = || trigger.own_error(HintText::TooManyRefs, var);
        let var_ref = self.own_var_ref(at, var)?.ok_or_else(too_many)?;
        let Some(variable) = self.hidden_variable(name)? else {
            return Err(Error::new(ErrorText::OnxVarCreateFail, 0));
        };
        self.spec.actions[index].track = Some(Track {
            var_ref,
            var: HistField::tracked(variable),
        });
        Ok(())
    }

    /// A reference of this trigger to its variable `at`.
    fn own_var_ref(&mut self, at: usize, culprit: Span) -> Result<Option<Arc<VarRef>>, Error> {
        let var = VarRef::new(&self.spec.vars[at], None)?;
        self.var_ref(var, culprit)
    }

    /// Creates a variable that only this trigger's actions use (`create_var()`). `None`: the event
    /// has a visible variable of that name, or the trigger has too many variables.
    fn hidden_variable(&mut self, name: &[u8]) -> Result<Option<Variable>> {
        let hidden = self.spec.field_vars.len() + self.spec.save_vars.len();
        let actions = self.spec.actions.iter();
        let tracked = actions.filter(|action| action.track.is_some());
        let index = self.spec.vars.len() + hidden + tracked.count();
        if self.is_defined(name)? || index >= VARS_MAX {
            return Ok(None);
        }
        let name = copy(name)?;
        Ok(Some(Variable { name, index }))
    }

    /// Resolves `save()`.
    #[inline(never)]
    fn save(&mut self, params: &[Param]) -> Result<(), Error> {
        if !self.spec.save_vars.is_empty() {
            return Err(Error::new(ErrorText::TooManySaveActions, 0));
        }
        for param in params {
            match self.field_var(param, Place::Saved) {
                Ok(var) => self.spec.save_vars.push(var, GFP_KERNEL)?,
                Err(error) => {
                    self.scope.log(error);
                    let name = param.atom.remnant();
                    let failed = self.trigger.error(ErrorText::FieldVarCreateFail, name);
                    let errno = error.errno;
                    return Err(Error { errno, ..failed });
                }
            }
        }
        Ok(())
    }

    /// Resolves a field of this event as a variable of this trigger (`create_field_var()`).
    #[inline(never)]
    fn field_var(&mut self, param: &Param, place: Place) -> Result<FieldVar, Error> {
        // The rest of the text after C's parsing.
        let name = param.atom.remnant();
        let value = match self.expr(&param.atom, place) {
            Ok(value) => value,
            Err(error) => {
                self.scope.log(error);
                let failed = self.trigger.error(ErrorText::FieldVarParseFail, name);
                let errno = error.errno;
                return Err(Error { errno, ..failed });
            }
        };
        match self.hidden_variable(self.trigger.bytes(name))? {
            Some(variable) => Ok(FieldVar { variable, value }),
            None => Err(self.trigger.error(ErrorText::VarCreateFindFail, name)),
        }
    }

    /// Resolves `trace()`: checks its parameters against the fields of the synthetic event
    /// (`trace_action_create()`).
    #[inline(never)]
    fn trace(
        &mut self,
        action: &trigger::Action,
        event: Span,
        params: &[Param],
    ) -> Result<(KVec<usize>, KBox<dyn SynthTarget>), Error> {
        let trigger = self.trigger;
        let Some(synth_event) = self.scope.synth_event(trigger.bytes(event))? else {
            return Err(trigger.error(ErrorText::SynthEventNotFound, event));
        };
        let mut slots = KVec::new();
        for param in params {
            let qualifier = param.qualifier?;
            let qualifier =
                qualifier.map(|event| [trigger.bytes(event.system), trigger.bytes(event.event)]);
            let rest = trigger.bytes(param.rest);
            let var = match rest.strip_prefix(b"$") {
                Some(name) => self.param_var(action, qualifier, name)?,
                None => self.param_field(action, qualifier, param)?,
            };
            let field = synth_event.fields().get(slots.len());
            match self.param_ref(&var, qualifier, field, param.rest)? {
                Some(slot) => slots.push(slot, GFP_KERNEL)?,
                None => return Err(trigger.error(ErrorText::SynthTypeMismatch, param.rest)),
            }
        }
        if slots.len() != synth_event.fields().len() {
            return Err(trigger.error(ErrorText::SynthCountMismatch, event));
        }
        Ok((slots, synth_event))
    }

    /// The slot of the reference to `var`; `None` if `field` does not take it.
    #[inline(never)]
    fn param_ref(
        &mut self,
        var: &Argument,
        qualifier: Option<[&[u8]; 2]>,
        field: Option<&SynthField>,
        culprit: Span,
    ) -> Result<Option<usize>, Error> {
        let var = match var {
            Argument::Own(at) => VarRef::new(&self.spec.vars[*at], qualifier),
            Argument::Field(at) => VarRef::of_field_var(&self.spec.field_vars[*at], qualifier),
            Argument::Other(found) => found.reference(qualifier),
        }?;
        if var.kind == ValueKind::UserStack {
            return Err(self.trigger.own_error(HintText::UserStackParam, culprit));
        }
        if !field.is_some_and(|field| field.takes(&var.type_, var.size, var.c_signed, var.kind)) {
            return Ok(None);
        }
        let too_many = || self.trigger.own_error(HintText::TooManyRefs, culprit);
        Ok(Some(self.var_ref(var, culprit)?.ok_or_else(too_many)?.slot))
    }

    /// Returns whether `event` is the event of this trigger.
    fn is_own_event(&self, [system, name]: [&[u8]; 2]) -> bool {
        let own = self.scope.event();
        (system, name) == (own.system(), own.name())
    }

    /// Resolves the variable `$name` as a parameter (`trace_action_find_var()`).
    #[inline(never)]
    fn param_var(
        &mut self,
        action: &trigger::Action,
        qualifier: Option<[&[u8]; 2]>,
        name: &[u8],
    ) -> Result<Argument, Error> {
        if qualifier.is_none_or(|event| self.is_own_event(event)) {
            if let Some(at) = self.spec.find_var(name) {
                return Ok(Argument::Own(at));
            }
        }
        let event = qualifier.or_else(|| self.match_event(action));
        match self.find_event_var(event, name)? {
            Some(found) => Ok(Argument::Other(found)),
            None => Err(self.trigger.error_at(ErrorText::ParamNotFound, name)),
        }
    }

    /// The event of `onmatch()`.
    fn match_event(&self, action: &trigger::Action) -> Option<[&'a [u8]; 2]> {
        let trigger = self.trigger;
        match action.handler {
            ActionHandler::OnMatch { system, event } => {
                Some([system, event].map(|name| trigger.bytes(name)))
            }
            _ => None,
        }
    }

    /// Resolves a field as a parameter (`trace_action_create_field_var()`).
    fn param_field(
        &mut self,
        action: &trigger::Action,
        qualifier: Option<[&[u8]; 2]>,
        param: &Param,
    ) -> Result<Argument, Error> {
        if qualifier.is_none_or(|event| self.is_own_event(event)) {
            match self.own_field(param) {
                Ok(argument) => return Ok(argument),
                // Another event may have a field of that name, but the command means this one.
                Err(error) if error.errno == ENOMEM && !self.lacks_function(param)? => {
                    return Err(error);
                }
                Err(error) => self.scope.log(error),
            }
        }
        match qualifier.or_else(|| self.match_event(action)) {
            Some(event) => self.field_of_other_event(event, param.rest),
            None => Err(Error::silent(EINVAL)),
        }
    }

    /// Resolves a field of this event as a parameter.
    #[inline(never)]
    fn own_field(&mut self, param: &Param) -> Result<Argument, Error> {
        let var = self.field_var(param, Place::Variable)?;
        self.spec.field_vars.push(var, GFP_KERNEL)?;
        Ok(Argument::Field(self.spec.field_vars.len() - 1))
    }

    /// Returns whether C lacks a function for the type of a field of this event: its errno is
    /// `ENOMEM` then, too.
    fn lacks_function(&self, param: &Param) -> Result<bool> {
        match &param.atom {
            Expr::Field(field) => self.lacks_function_for(self.trigger.bytes(field.name)),
            _ => Ok(false),
        }
    }

    /// Resolves a field of another event, as a variable of a histogram of that event with the same
    /// keys. Adds a helper trigger with the variable if it does not exist
    /// (`create_field_var_hist()`).
    fn field_of_other_event(&mut self, event: [&[u8]; 2], field: Span) -> Result<Argument, Error> {
        let trigger = self.trigger;
        let (params, variable) = match self.helper_params(event, field)? {
            Helper::Exists(found) => return Ok(Argument::Other(found)),
            Helper::Missing { params, variable } => (params, variable),
        };
        let [system, name] = event;
        let params = params.as_bytes();
        if let Err(error) = self
            .scope
            .add_helper(system, name, params, trigger.command())
        {
            self.scope.log(error);
            let failed = trigger.error(ErrorText::HistCreateFail, field);
            // C returns EINVAL, whatever the error.
            return Err(match error.errno {
                ENOMEM if !error.has_hint(HintText::NoFunction) => Error {
                    errno: ENOMEM,
                    ..failed
                },
                _ => failed,
            });
        }
        match self.find_event_var(Some(event), &params[variable])? {
            Some(found) => Ok(Argument::Other(found)),
            None => Err(trigger.error(ErrorText::SynthVarNotFound, field)),
        }
    }

    /// Composes the helper trigger on `event` for one of its fields.
    #[inline(never)]
    fn helper_params(&self, event: [&[u8]; 2], field: Span) -> Result<Helper, Error> {
        let trigger = self.trigger;
        let [system, name] = event;
        let too_long = || trigger.own_error(HintText::HelperTooLong, field);
        let Some(histograms) = self.scope.histograms(system, name)? else {
            return Err(trigger.error(ErrorText::EventFileNotFound, field));
        };
        let keys = self.spec.lookup_keys();
        let mut histograms = histograms.iter();
        let compatible = histograms.find(|attached| {
            let others = &attached.histogram.spec().keys;
            let alike = |(a, b): (&HistField, &HistField)| {
                a.type_() == b.type_() && a.size == b.size && a.c_signed() == b.c_signed()
            };
            others.len() == keys.len() && others.iter().zip(keys).all(alike)
        });
        let Some(compatible) = compatible else {
            return Err(trigger.error(ErrorText::HistNotFound, field));
        };
        let field_name = trigger.bytes(field);
        let mut params = Text::new();
        params.bytes(b"keys=")?;
        for (n, key) in compatible.histogram.spec().keys.iter().enumerate() {
            if n > 0 {
                params.bytes(b",")?;
            }
            key.show(&mut params)?;
        }
        params.bytes(b":")?;
        let start = params.as_bytes().len();
        params.bytes(b"synthetic_")?;
        params.bytes(field_name)?;
        let variable = start..params.as_bytes().len();
        if variable.len() >= limits::STRING_MAX as usize {
            return Err(too_long());
        }
        if let Some(found) = self.find_event_var(Some(event), &params.as_bytes()[start..])? {
            return Ok(Helper::Exists(found));
        }
        params.bytes(b"=")?;
        params.bytes(field_name)?;
        let spec = compatible.histogram.spec();
        let is_stack = |key: &HistField| key.function == Function::UserStack;
        if spec.keys.iter().any(is_stack) && spec.ustack != limits::STACK_DEPTH as u32 {
            params.format(format_args!(":ustack({})", spec.ustack))?;
        }
        if let Some(filter) = &compatible.filter {
            params.bytes(b" if ")?;
            params.bytes(filter)?;
        }
        match params.as_bytes().len() < limits::STRING_MAX as usize {
            true => Ok(Helper::Missing { params, variable }),
            false => Err(too_long()),
        }
    }
}

/// The result of looking for a helper's variable.
enum Helper {
    /// The variable exists.
    Exists(EventVar),
    /// The trigger to add, by its parameters; the variable's name is at `variable` in them.
    Missing {
        params: Text,
        variable: Range<usize>,
    },
}

/// A resolved parameter of `trace()`.
enum Argument {
    /// A variable of this trigger: its index.
    Own(usize),
    /// A field of this event: its index in the field variables.
    Field(usize),
    /// A variable of another histogram.
    Other(EventVar),
}

// SPDX-License-Identifier: GPL-2.0

//! A trigger whose names are being resolved.
//!
//! Checks are in C's order (`create_hist_data()`), because only the first error is reported. What the actions mean
//! comes last: see [`super::params`].

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    action::Action,
    field::{
        Function,
        HistField, //
    },
    scope::EventVar,
    variable::{
        ValueKind,
        Variable, //
    },
    Scope,
    SortBy,
    SortKey,
    Spec, //
};
use crate::{
    limits,
    text::copy,
    trigger::{
        ActionHandler,
        Error,
        ErrorText,
        Expr,
        HintText,
        ModifierKind,
        Order,
        Place,
        Trigger, //
    },
};

/// What of a trigger is being resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its values.
    Values,
    /// Its variables, then its keys and sort keys.
    Fields,
    /// The parameters of its actions.
    Actions,
}

/// A trigger that is being resolved.
pub struct Draft<'a> {
    pub(super) scope: &'a dyn Scope,
    pub(super) trigger: &'a Trigger,
    /// Whether its trigger is to be removed, so that its variables may exist.
    remove: bool,
    pub(super) stage: Stage,
    pub(super) spec: KBox<Spec>,
    /// Bytes of the keys so far, as C lays them out.
    key_size: u32,
}

impl<'a> Draft<'a> {
    /// Resolves the names of `trigger` in `scope`, except those in its actions. With `remove`, the trigger is one
    /// to be removed.
    ///
    /// # Errors
    ///
    /// The errors that C reports, in C's order; `ENOMEM`; the errors of `scope`.
    pub fn new(scope: &'a dyn Scope, trigger: &'a Trigger, remove: bool) -> Result<Self, Error> {
        let mut draft = Self {
            scope,
            trigger,
            remove,
            stage: Stage::Values,
            spec: Spec::unresolved(trigger)?,
            key_size: 0,
        };
        draft.actions()?;
        draft.vals()?;
        draft.stage = Stage::Fields;
        draft.vars()?;
        draft.keys()?;
        draft.spec.sort = draft.sort()?;
        draft.stage = Stage::Actions;
        Ok(draft)
    }

    /// The spec as far as it is made, to be compared with others.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The spec, after [`Draft::resolve_actions`]. Fails with `ENOMEM`.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    pub fn into_spec(self) -> Result<Arc<Spec>> {
        Ok(Arc::new(KBox::into_inner(self.spec), GFP_KERNEL)?)
    }
}

impl Draft<'_> {
    fn actions(&mut self) -> Result<(), Error> {
        for action in self.trigger.actions.iter() {
            let action = action?;
            // Before the action is looked at, in C as well.
            if let ActionHandler::OnMatch { system, event } = action.handler {
                let [system, name] = [system, event].map(|name| self.trigger.bytes(name));
                if !self.scope.has_event(system, name)? {
                    return Err(self.trigger.error(ErrorText::InvalidSubsysEvent, event));
                }
            }
            let action = Action::new(self.trigger, action)?;
            self.spec.actions.push(action, GFP_KERNEL)?;
        }
        Ok(())
    }

    fn vals(&mut self) -> Result<(), Error> {
        self.spec.vals.push(HistField::hitcount(), GFP_KERNEL)?;
        // The first column is that of the hitcount, by whatever name.
        let mut columns = 1;
        for expr in self.trigger.vals.iter() {
            let expr = expr?;
            let field = self.expr(expr, Place::Value)?;
            if field.kind() == ValueKind::Text {
                return Err(self.trigger.own_error(HintText::StringValue, expr.text()));
            }
            let column = match field.function {
                Function::Counter => 0,
                _ => columns,
            };
            columns = columns.max(column + 1);
            self.spec.vals.push(field.into_value(column), GFP_KERNEL)?;
        }
        Ok(())
    }

    fn vars(&mut self) -> Result<(), Error> {
        for var in self.trigger.vars.iter() {
            let var = var?;
            let name = self.trigger.bytes(var.name);
            if !self.remove && self.is_defined(name)? {
                return Err(self.trigger.error(ErrorText::DuplicateVar, var.name));
            }
            let mut field = self.expr(&var.expr, Place::Variable)?;
            if field.modifier == Some(ModifierKind::Execname) {
                field.function = Function::Execname;
                field.size = limits::STRING_MAX;
            }
            let variable = Variable {
                name: copy(name)?,
                index: self.spec.vars.len(),
            };
            self.spec
                .vars
                .push(field.into_variable(variable), GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Whether this trigger, or another one of its event, has a variable `name` (`find_var()`).
    pub(super) fn is_defined(&self, name: &[u8]) -> Result<bool> {
        Ok(self.spec.find_var(name).is_some()
            || EventVar::among(&self.scope.own_histograms()?, name).is_some())
    }

    fn keys(&mut self) -> Result<(), Error> {
        // What C's keys take in addition: a stack in the record is a string there, without `.stacktrace`.
        let mut more = 0;
        let mut stack = None;
        for expr in self.trigger.keys.iter() {
            let expr = expr?;
            let key = self.expr(expr, Place::Key)?;
            if key.refers() {
                return Err(self.trigger.error(ErrorText::InvalidRefKey, expr.remnant()));
            }
            let offset = self.key_size;
            self.key_size += key.size.next_multiple_of(limits::KEY_ALIGN);
            if let (Expr::Field(field), Function::StoredStack) = (expr, key.function) {
                if field.modifier.is_none() {
                    more += limits::STRING_MAX - key.size;
                    stack = Some(field.name);
                }
            }
            if self.key_size + more > limits::KEY_SIZE_MAX {
                return Err(match stack {
                    Some(at) if self.key_size <= limits::KEY_SIZE_MAX => {
                        self.trigger.own_error(HintText::StackNeedsModifier, at)
                    }
                    _ => self.trigger.own_error(HintText::KeysTooLong, expr.text()),
                });
            }
            self.spec.keys.push(key.into_key(offset), GFP_KERNEL)?;
        }
        Ok(())
    }

    fn sort(&mut self) -> Result<KVec<SortKey>, Error> {
        let mut sort = KVec::new();
        for key in self.trigger.sort.iter() {
            let key = key?;
            let name = self.trigger.bytes(key.name);
            let found = match name {
                b"hitcount" => Some(SortBy::Value(0)),
                // The line of the trigger shows one name of a field that has several. It has to mean the same when it
                // is written: the first field of that name.
                _ => self.sortable(name, HistField::name).and_then(|field| {
                    let shown = self.spec.sort_field(field).command_name();
                    self.sortable(shown, HistField::command_name)
                }),
            };
            let unknown = || self.trigger.error(ErrorText::InvalidSortField, key.name);
            let key = SortKey {
                by: found.ok_or_else(unknown)?,
                descending: key.order? == Order::Descending,
            };
            sort.push(key, GFP_KERNEL)?;
        }
        if sort.is_empty() {
            let hitcount = SortKey {
                by: SortBy::Value(0),
                descending: false,
            };
            sort.push(hitcount, GFP_KERNEL)?;
        }
        Ok(sort)
    }

    /// The first value but the hitcount, or key, whose name, which `name_of` returns, is `name`.
    fn sortable(&self, name: &[u8], name_of: fn(&HistField) -> &[u8]) -> Option<SortBy> {
        let is = |field: &HistField| name_of(field) == name;
        let mut vals = self.spec.vals.iter().skip(1);
        let value = vals.position(is).map(|n| SortBy::Value(1 + n));
        value.or_else(|| self.spec.keys.iter().position(is).map(SortBy::Key))
    }
}

// SPDX-License-Identifier: GPL-2.0

//! A trigger whose names are being resolved.
//!
//! Checks are in C's order (`create_hist_data()`), because only the first error is reported.
//! Actions are resolved last: see [`super::params`].

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
    Spec,
    Statistic, //
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
        ParsedList,
        Place,
        Quantile,
        Trigger, //
    },
};

/// The part of a trigger that is being resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The values, the first part.
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
    /// Whether the trigger is being removed, so that its variables may exist.
    remove: bool,
    pub(super) stage: Stage,
    pub(super) spec: KBox<Spec>,
}

impl<'a> Draft<'a> {
    /// Resolves the names of `trigger` in `scope`, except those in its actions. With `remove`, the
    /// trigger is one to be removed.
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
        };
        draft.actions()?;
        draft.vals()?;
        draft.stage = Stage::Fields;
        draft.vars()?;
        draft.spec.keys = draft.keys(&trigger.keys)?;
        draft.spec.sort = draft.sort()?;
        draft.clauses()?;
        draft.stage = Stage::Actions;
        Ok(draft)
    }

    /// The spec, as far as it is resolved, to be compared with others.
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
            // Before the action is resolved, as in C.
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
        // Column 0 is the hitcount, by any of its names.
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
            columns = columns.max(column + field.columns().len());
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

    /// Returns whether this trigger, or another one of its event, has a variable `name`
    /// (`find_var()`).
    pub(super) fn is_defined(&self, name: &[u8]) -> Result<bool> {
        Ok(self.spec.find_var(name).is_some()
            || EventVar::among(&self.scope.own_histograms()?, name).is_some())
    }

    /// Resolves keys, or the fields in `on(…)`, which are laid out like keys.
    fn keys(&mut self, exprs: &ParsedList<Expr>) -> Result<KVec<HistField>, Error> {
        let mut keys = KVec::new();
        // Size of the keys so far in bytes, as C lays them out.
        let mut size = 0;
        // Bytes that the keys in the map lack: they have numbers of stacks, or short names.
        let mut less = 0;
        let (interns, short_names) = (self.spec.interns(), self.spec.has_short_names());
        // Additional bytes that C's keys take: there, a stack in the record without `.stacktrace`
        // is a string.
        let mut more = 0;
        let mut stack = None;
        for expr in exprs.iter() {
            let expr = expr?;
            let key = self.expr(expr, Place::Key)?;
            if key.refers() {
                return Err(self.trigger.error(ErrorText::InvalidRefKey, expr.remnant()));
            }
            let offset = size;
            size += key.size.next_multiple_of(limits::KEY_ALIGN);
            if interns && key.function.is_stack() {
                less += key.size - size_of::<u64>() as u32;
            } else if short_names && key.function == Function::Comm {
                less += key.size - limits::COMM_LEN as u32;
            } else if let (Expr::Field(field), Function::StoredStack) = (expr, key.function) {
                if field.modifier.is_none() {
                    more += limits::STRING_MAX - key.size;
                    stack = Some(field.name);
                }
            }
            if size + more - less > limits::KEY_SIZE_MAX {
                return Err(match stack {
                    Some(at) if size <= limits::KEY_SIZE_MAX => {
                        self.trigger.own_error(HintText::StackNeedsModifier, at)
                    }
                    _ => self.trigger.own_error(HintText::KeysTooLong, expr.text()),
                });
            }
            keys.push(key.into_key(offset), GFP_KERNEL)?;
        }
        Ok(keys)
    }

    /// Checks the clauses that C lacks. Last, since C refuses all of them.
    fn clauses(&mut self) -> Result<(), Error> {
        let trigger = self.trigger;
        let clauses = &trigger.clauses;
        let refuse = |hint, at| Err(trigger.own_error(hint, at));
        if let Some(on) = trigger.clauses.on.text {
            self.spec.on = self.keys(&trigger.clauses.on)?;
            let mut refs = self.spec.refs.iter();
            if !refs.any(|reference| reference.var.home.is_some()) {
                return refuse(HintText::OnWithoutReference, on);
            }
        }
        let quantiles = clauses.quantiles.as_ref().map(|clause| clause.text);
        let unit = clauses.unit.map(|clause| clause.text);
        let buckets = clauses.buckets.map(|clause| clause.text);
        let mut distributions = self.spec.distributions();
        if let Some(clause) = quantiles.or(unit).or(buckets) {
            if self.spec.distributions().next().is_none() {
                return refuse(HintText::NoDistribution, clause);
            }
        }
        if let Some(expire) = clauses.expire.filter(|expire| expire.value.taken) {
            let mut vars = self.spec.vars.iter();
            if !vars.any(|var| var.kind() == ValueKind::Number) {
                return refuse(HintText::ExpireTaken, expire.text);
            }
        }
        match unit {
            Some(unit) if distributions.any(|(n, _)| self.spec.vals[n].is_usecs()) => {
                refuse(HintText::UnitOfUsecs, unit)
            }
            _ => Ok(()),
        }
    }

    fn sort(&mut self) -> Result<KVec<SortKey>, Error> {
        let mut sort = KVec::new();
        for key in self.trigger.sort.iter() {
            let key = key?;
            let name = self.trigger.bytes(key.name);
            let found = match name {
                b"hitcount" => Some(SortBy::Value(0)),
                // The trigger's line shows one name of a field that has several. It has to mean the
                // same when it is written again: the first field of that name.
                _ => self.sortable(name, HistField::name).and_then(|field| {
                    let shown = self.spec.sort_field(field).command_name();
                    self.sortable(shown, HistField::command_name)
                }),
            };
            let number = key.number.and_then(|(text, order)| {
                let by = self.number(self.trigger.bytes(text))?;
                Some((by, order))
            });
            let unknown = || self.trigger.error(ErrorText::InvalidSortField, key.name);
            let (by, order) = match number {
                Some(number) => number,
                None => (self.shown_as(found.ok_or_else(unknown)?), key.order?),
            };
            let descending = order == Order::Descending;
            sort.push(SortKey { by, descending }, GFP_KERNEL)?;
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

    /// The statistic of a value that `text` names: `NAME.min`, `NAME.p99.9`; or an expression in
    /// parentheses.
    fn number(&self, text: &[u8]) -> Option<SortBy> {
        // The part of `text` after the name of a value.
        let rest = |field: &HistField| text.strip_prefix(field.command_name());
        let vals = || self.spec.vals.iter().enumerate().skip(1);
        let exact = vals().find(|(_, field)| {
            let (_, modifier) = field.value_name();
            let one = field.modifier.is_some_and(ModifierKind::is_statistic);
            let named = match field.modifier {
                Some(ModifierKind::Dist(_)) => false,
                _ => one || field.function == Function::Parens,
            };
            named && rest(field) == Some(modifier.as_bytes())
        });
        if let Some((n, _)) = exact {
            return Some(SortBy::Value(n));
        }
        vals().find_map(|(n, field)| {
            let Some(ModifierKind::Dist(_)) = field.modifier else {
                return None;
            };
            let statistic = match rest(field)? {
                b".min" => Statistic::Min,
                b".max" => Statistic::Max,
                b".avg" => Statistic::Avg,
                rest => Statistic::Quantile(Quantile::parse(rest.strip_prefix(b".p")?)?),
            };
            Some(SortBy::Distribution(n, statistic))
        })
    }

    /// The sort key in the trigger's line for a value without a statistic. A distribution is sorted
    /// by its largest value, which has to mean the same when it is written again.
    fn shown_as(&self, by: SortBy) -> SortBy {
        let SortBy::Value(n) = by else {
            return by;
        };
        let Some(ModifierKind::Dist(_)) = self.spec.vals[n].modifier else {
            return by;
        };
        let name = self.spec.vals[n].command_name();
        let mut vals = self.spec.vals.iter();
        let max = |field: &HistField| {
            field.modifier == Some(ModifierKind::Max) && field.command_name() == name
        };
        match vals.position(max) {
            Some(max) => SortBy::Value(max),
            None => SortBy::Distribution(n, Statistic::Max),
        }
    }

    /// The first value other than the hitcount, or key, for which `name_of` returns `name`.
    fn sortable(&self, name: &[u8], name_of: fn(&HistField) -> &[u8]) -> Option<SortBy> {
        let is = |field: &HistField| name_of(field) == name;
        let mut vals = self.spec.vals.iter().skip(1);
        let value = vals.position(is).map(|n| SortBy::Value(1 + n));
        value.or_else(|| self.spec.keys.iter().position(is).map(SortBy::Key))
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Makes the plan of a histogram from the syntax tree of a trigger.
//!
//! Checks are in C's order (`create_hist_data()`), because only the first error is reported. What the actions mean
//! comes last: see [`super::action`].

use kernel::prelude::*;
use kernel::sync::Arc;

use super::action::Action;
use super::action::Handler;
use super::action::Targets;
use super::field::Function;
use super::field::HistField;
use super::limits;
use super::program;
use super::program::Program;
use super::scope::Found;
use super::var::Held;
use super::var::VarRef;
use super::var::Variable;
use super::Plan;
use super::Reference;
use super::Scope;
use super::SortKey;
use crate::event::Clock;
use crate::event::EventField;
use crate::event::FilterType;
use crate::text::copy;
use crate::trigger::ActionHandler;
use crate::trigger::Error;
use crate::trigger::ErrorText;
use crate::trigger::Expr;
use crate::trigger::FieldRef;
use crate::trigger::HintText;
use crate::trigger::ModifierKind;
use crate::trigger::Operator;
use crate::trigger::Order;
use crate::trigger::Place;
use crate::trigger::Span;
use crate::trigger::Trigger;
use crate::trigger::VarRef as VarRefText;
use crate::trigger::MAP_BITS_DEFAULT;
use crate::trigger::OPERATORS_MAX;
use crate::trigger::VARS_MAX;

/// A trigger that is being built: its fields are resolved, its actions are not yet.
pub struct Draft<'a> {
    pub(super) scope: &'a dyn Scope,
    pub(super) trigger: &'a Trigger,
    /// Its trigger is to be removed, so its variables may exist.
    remove: bool,
    /// Everything but the actions is resolved.
    resolved: bool,
    /// Its own program is empty.
    pub(super) plan: KBox<Plan>,
    /// The program of the plan.
    program: KBox<Program>,
    /// Bytes of the keys so far, as C lays them out.
    key_size: u32,
}

impl<'a> Draft<'a> {
    /// Resolves the names of `trigger` in `scope`, those in its actions left out. With `remove`, the trigger is one
    /// to be removed.
    ///
    /// # Errors
    ///
    /// Those of C, in C's order; `ENOMEM`; the errors of `scope`.
    pub fn new(scope: &'a dyn Scope, trigger: &'a Trigger, remove: bool) -> Result<Self, Error> {
        let mut draft = Self {
            scope,
            trigger,
            remove,
            resolved: false,
            plan: empty_plan(trigger)?,
            program: empty_program()?,
            key_size: 0,
        };
        draft.actions()?;
        draft.vals()?;
        draft.vars()?;
        draft.keys()?;
        draft.plan.sort = draft.sort()?;
        draft.resolved = true;
        Ok(draft)
    }

    /// The plan as far as it is made, to be compared with others.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Compiles the program. `targets` are from [`Draft::resolve_actions`]. Fails with `ENOMEM`.
    pub fn compile(&mut self, targets: &Targets) -> Result {
        self.program.compile(&self.plan, targets)
    }

    /// The plan, when all is done.
    pub fn into_plan(self) -> Plan {
        Plan {
            program: KBox::into_inner(self.program),
            ..KBox::into_inner(self.plan)
        }
    }
}

// These two are not inlined, as they need much of the kernel's stack.

#[inline(never)]
fn empty_program() -> Result<KBox<Program>> {
    Ok(KBox::new(Program::empty(), GFP_KERNEL)?)
}

/// A plan of `trigger` in which nothing is resolved.
#[inline(never)]
fn empty_plan(trigger: &Trigger) -> Result<KBox<Plan>> {
    let clock = trigger.clock.map_or(Some(Clock::Global), |clock| {
        Clock::new(trigger.bytes(clock))
    });
    let plan = Plan {
        fields: KVec::new(),
        n_vals: 0,
        n_vars: 0,
        refs: KVec::new(),
        chain: 0,
        actions: KVec::new(),
        field_vars: KVec::new(),
        save_vars: KVec::new(),
        sort: KVec::new(),
        bits: trigger.size.map_or(MAP_BITS_DEFAULT, |size| size.bits),
        nohitcount: trigger.nohitcount.is_some(),
        timed: false,
        // An unknown clock is reported by `Plan::check_clock()`, after all else.
        clock: clock.unwrap_or(Clock::Global),
        program: Program::empty(),
    };
    Ok(KBox::new(plan, GFP_KERNEL)?)
}

/// What a variable of the same trigger is defined as.
enum Definition {
    /// A field, to be resolved where the variable is used.
    Text(Span),
    /// An expression.
    Computed(HistField),
}

/// What the name of a field refers to (`parse_field()`).
enum Named {
    Timestamp,
    Stacktrace,
    Cpu(Option<EventField>),
    Comm(Option<EventField>),
    Hitcount,
    Recorded(EventField),
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
            self.plan.actions.push(action, GFP_KERNEL)?;
        }
        Ok(())
    }

    fn vals(&mut self) -> Result<(), Error> {
        self.plan.fields.push(HistField::hitcount(), GFP_KERNEL)?;
        // The first column is that of the hitcount, by whatever name.
        let mut columns = 1;
        for expr in self.trigger.vals.iter() {
            let expr = expr?;
            let field = self.expr(expr, Place::Value)?;
            if field.held() == Held::Text {
                return Err(self.trigger.own_error(HintText::StringValue, expr.text()));
            }
            let column = match field.function {
                Function::Counter => 0,
                _ => columns,
            };
            columns = columns.max(column + 1);
            self.plan
                .fields
                .push(field.into_value(column), GFP_KERNEL)?;
        }
        self.plan.n_vals = self.plan.fields.len();
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
                field.size = limits::STRING;
            }
            let variable = Variable {
                name: copy(name)?,
                index: self.plan.n_vars,
            };
            self.plan
                .fields
                .push(field.into_variable(variable), GFP_KERNEL)?;
            self.plan.n_vars += 1;
            self.plan.n_vals += 1;
        }
        Ok(())
    }

    /// Whether this trigger, or another one of its event, has a variable `name` (`find_var()`).
    pub(super) fn is_defined(&self, name: &[u8]) -> Result<bool> {
        Ok(self.plan.variable_at(name).is_some()
            || Found::among(&self.scope.own_histograms()?, name).is_some())
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
                    more += limits::STRING - key.size;
                    stack = Some(field.name);
                }
            }
            if self.key_size + more > limits::KEY_SIZE {
                return Err(match stack {
                    Some(at) if self.key_size <= limits::KEY_SIZE => {
                        self.trigger.own_error(HintText::StackNeedsModifier, at)
                    }
                    _ => self.trigger.own_error(HintText::KeysTooLong, expr.text()),
                });
            }
            self.plan.fields.push(key.into_key(offset), GFP_KERNEL)?;
        }
        Ok(())
    }

    fn sort(&mut self) -> Result<KVec<SortKey>, Error> {
        let mut sort = KVec::new();
        for key in self.trigger.sort.iter() {
            let key = key?;
            let name = self.trigger.bytes(key.name);
            // The line of the trigger shows one name of a field that has several. It has to mean the same when it
            // is written: the first field of that name.
            let fields = &self.plan.fields;
            let called = |name, of: fn(&HistField) -> &[u8]| {
                let mut sortable = (1..fields.len()).filter(|&i| fields[i].variable.is_none());
                sortable.find(|&i| of(&fields[i]) == name)
            };
            let found = match name {
                b"hitcount" => Some(0),
                _ => called(name, HistField::name)
                    .and_then(|i| called(fields[i].command_name(), HistField::command_name)),
            };
            let unknown = || self.trigger.error(ErrorText::InvalidSortField, key.name);
            let key = SortKey {
                field: found.ok_or_else(unknown)?,
                descending: key.order? == Order::Descending,
            };
            sort.push(key, GFP_KERNEL)?;
        }
        if sort.is_empty() {
            let hitcount = SortKey {
                field: 0,
                descending: false,
            };
            sort.push(hitcount, GFP_KERNEL)?;
        }
        Ok(sort)
    }

    /// Resolves a key, a value, the definition of a variable, or an operand of one of these (`parse_expr()`).
    pub(super) fn expr(&mut self, expr: &Expr, place: Place) -> Result<HistField, Error> {
        match expr {
            Expr::Bad { error, .. } => Err(*error),
            Expr::Field(field) => self.field(field, place, expr.remnant()),
            Expr::Literal { value, .. } => Ok(HistField::literal(*value)),
            Expr::Reference(reference) => match self.definition(reference)? {
                Some(Definition::Text(text)) => self.field_of_text(text, place, expr.remnant()),
                Some(Definition::Computed(field)) => Ok(field),
                None => self.reference(reference, place, expr.remnant()),
            },
            Expr::Stacktrace { .. } => Ok(HistField::stack()),
            Expr::Negation { operand, .. } => self.negative(operand, expr.text()),
            Expr::Binary {
                operator,
                left,
                right,
                ..
            } => self.binary(left, *operator, right, expr.text()),
        }
    }

    // Operands are resolved recursively. What needs much of the kernel's stack is in functions that are not inlined,
    // so that not each level of the recursion has it.

    /// The definition of a variable of the same trigger (`local_field_var_ref()`). Fails with `ENOMEM`.
    #[inline(never)]
    fn definition(&self, reference: &VarRefText) -> Result<Option<Definition>> {
        let trigger = self.trigger;
        // Not in actions: C has freed the definitions by then.
        if self.resolved {
            return Ok(None);
        }
        let here = reference.qualifier.is_none_or(|event| {
            trigger.bytes(event.system) == self.scope.event().system()
                && trigger.bytes(event.event) == self.scope.event().name()
        });
        if !here {
            return Ok(None);
        }
        let name = trigger.bytes(reference.name);
        if let Some(text) = trigger.substitute(name) {
            return Ok(Some(Definition::Text(text)));
        }
        // An expression of a variable that is resolved already. C has cut its text there.
        let fields = &self.plan.fields;
        let computed = self.plan.variable_at(name).map(|at| &fields[at]);
        let computed = computed.filter(|field| field.function != Function::VarRef);
        let copy = computed.map(HistField::copy).transpose()?;
        Ok(copy.map(Definition::Computed))
    }

    /// A reference to a variable of another trigger (`parse_var_ref()`).
    #[inline(never)]
    fn reference(
        &mut self,
        reference: &VarRefText,
        place: Place,
        culprit: Span,
    ) -> Result<HistField, Error> {
        let trigger = self.trigger;
        let qualifier = reference
            .qualifier
            .map(|event| [trigger.bytes(event.system), trigger.bytes(event.event)]);
        let found = self.find_event_var(qualifier, trigger.bytes(reference.name))?;
        let var_ref = match found {
            Some(found) => {
                let home = Some(found.home.clone());
                let var = VarRef::new(home, found.field(), qualifier)?;
                self.var_ref(var, reference.text)?
            }
            None => None,
        };
        let Some(var_ref) = var_ref else {
            return Err(self.not_found(reference, place));
        };
        let stack = var_ref.held == Held::Stack;
        if place == Place::Value && stack {
            return Err(trigger.error(ErrorText::BadFieldModifier, culprit));
        }
        Ok(HistField::var_ref(var_ref)?)
    }

    /// The errors for a variable that does not exist: C then looks for a field of that name, and reports that, too.
    #[inline(never)]
    fn not_found(&self, reference: &VarRefText, place: Place) -> Error {
        let trigger = self.trigger;
        self.scope
            .log(trigger.error(ErrorText::VarNotFound, reference.name));
        match trigger.field(reference.atom, place) {
            Ok(field) => trigger.error(ErrorText::FieldNotFound, field.name),
            Err(error) => error,
        }
    }

    /// Finds a variable by its name (`find_event_var()`): of the event of `qualifier`; or else of the events of
    /// `onmatch()`; or else of any event of the tracing directory. If it is not unique, that is logged.
    #[inline(never)]
    pub(super) fn find_event_var(
        &self,
        qualifier: Option<[&[u8]; 2]>,
        name: &[u8],
    ) -> Result<Option<Found>> {
        if let Some([system, event]) = qualifier {
            let histograms = self.scope.histograms(system, event)?;
            return Ok(histograms.and_then(|histograms| Found::among(&histograms, name)));
        }
        let not_unique = || {
            let error = self.trigger.error_at(ErrorText::VarNotUnique, name);
            self.scope.log(error);
            Ok(None)
        };
        let mut found = None;
        for action in &self.plan.actions {
            let Handler::OnMatch { system, event } = &action.handler else {
                continue;
            };
            let histograms = self.scope.histograms(system, event)?.unwrap_or_default();
            if let Some(next) = Found::among(&histograms, name) {
                if found.replace(next).is_some() {
                    return not_unique();
                }
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        let mut of = None;
        for (event, histogram) in &self.scope.all_histograms()? {
            if let Some(next) = Found::of(histogram, name) {
                if of.replace(*event).is_some_and(|other| other != *event) {
                    return not_unique();
                }
                found.get_or_insert(next);
            }
        }
        Ok(found)
    }

    /// The plan's reference to what `var` refers to. There is one for each variable (`create_var_ref()`). `None`:
    /// there would be too many. `culprit` is where the trigger refers to it.
    pub(super) fn var_ref(
        &mut self,
        mut var: VarRef,
        culprit: Span,
    ) -> Result<Option<Arc<VarRef>>, Error> {
        let plan = &mut *self.plan;
        let refs = &mut plan.refs;
        if let Some(known) = refs.iter().find(|known| known.var.same(&var)) {
            return Ok(Some(known.var.clone()));
        }
        var.slot = refs.len();
        if var.slot == VARS_MAX {
            return Ok(None);
        }
        if let Some(home) = &var.home {
            plan.chain = plan.chain.max(home.plan().chain + 1);
            if plan.chain > limits::CHAIN {
                return Err(self.trigger.own_error(HintText::ChainTooLong, culprit));
            }
        }
        let var = Arc::new(var, GFP_KERNEL)?;
        let reference = Reference {
            var: var.clone(),
            once: false,
        };
        refs.push(reference, GFP_KERNEL)?;
        Ok(Some(var))
    }

    #[inline(never)]
    fn field_of_text(
        &mut self,
        text: Span,
        place: Place,
        culprit: Span,
    ) -> Result<HistField, Error> {
        // C has cut the definitions of the variables that were resolved so far, and of this one, behind the system of a
        // qualified name. Values are resolved first.
        let cut = match self.plan.n_vals {
            0 => 0,
            _ => self.plan.n_vars + 1,
        };
        if let Some(var) = self.trigger.reference_at(text, cut) {
            return Err(self.trigger.error(ErrorText::FieldNotFound, var.system));
        }
        let field = self.trigger.field(text, place)?;
        self.field(&field, place, culprit)
    }

    #[inline(never)]
    fn negative(&mut self, operand: &Expr, text: Span) -> Result<HistField, Error> {
        let mut operands = KVec::with_capacity(1, GFP_KERNEL)?;
        self.operand(operand, &mut operands)?;
        let field = HistField::negative(operands)?;
        self.check_computed(&field, text)?;
        Ok(field)
    }

    #[inline(never)]
    fn binary(
        &mut self,
        left: &Expr,
        operator: Operator,
        right: &Expr,
        text: Span,
    ) -> Result<HistField, Error> {
        let culprit = right.remnant();
        let mut operands = KVec::with_capacity(2, GFP_KERNEL)?;
        self.operand(left, &mut operands)?;
        self.operand(right, &mut operands)?;
        self.combined(operands, operator, culprit, text)
    }

    /// The result of `operator` on both operands. `culprit` is the second one.
    #[inline(never)]
    fn combined(
        &mut self,
        operands: KVec<HistField>,
        operator: Operator,
        culprit: Span,
        text: Span,
    ) -> Result<HistField, Error> {
        let [left, right] = &operands[..] else {
            return Err(EINVAL.into());
        };
        if left.is_usecs() != right.is_usecs() {
            return Err(Error::new(ErrorText::TimestampMismatch, 0));
        }
        for operand in [left, right] {
            if let Some(var) = &operand.reference {
                self.plan.refs[var.slot].once = true;
            }
        }
        if operator == Operator::Over && right.constant() == Some(0) {
            return Err(self.trigger.error(ErrorText::DivisionByZero, culprit));
        }
        if let (Some(left), Some(right)) = (left.constant(), right.constant()) {
            return Ok(HistField::literal(program::apply(operator, left, right)));
        }
        let field = HistField::binary(operands, operator)?;
        self.check_computed(&field, text)?;
        Ok(field)
    }

    /// Checks the size of an expression, written as `text`. The parser has counted the operators in that, but not those
    /// of a variable's definition. For what is shown C has a string of fixed size.
    fn check_computed(&self, field: &HistField, text: Span) -> Result<(), Error> {
        if field.operators() > OPERATORS_MAX {
            return Err(self.trigger.error(ErrorText::TooManySubexpr, text));
        }
        match field.name().len() < limits::STRING as usize {
            true => Ok(()),
            false => Err(self.trigger.own_error(HintText::ExprTooLong, text)),
        }
    }

    /// Resolves an operand, and adds it to `operands`: on the heap, since the others are resolved while it waits.
    /// Strings are refused as in C; stacks, too, and variables with a string, where C computes with their address.
    #[inline(never)]
    fn operand(&mut self, expr: &Expr, operands: &mut KVec<HistField>) -> Result<(), Error> {
        let operand = self.expr(expr, Place::Operand)?;
        if operand.held() != Held::Number {
            let text = ErrorText::InvalidStrOperand;
            return Err(self.trigger.error(text, expr.remnant()));
        }
        Ok(operands.push(operand, GFP_KERNEL)?)
    }

    /// Resolves a field (`parse_field()`, `create_hist_field()`). `culprit` is where the caret goes if it is not
    /// allowed in `place`.
    #[inline(never)]
    pub(super) fn field(
        &mut self,
        field: &FieldRef,
        place: Place,
        culprit: Span,
    ) -> Result<HistField, Error> {
        let trigger = self.trigger;
        let Some(named) = self.named(trigger.bytes(field.name))? else {
            return Err(trigger.no_field(field.name));
        };
        let modifier = field.modifier.map(|modifier| modifier.kind);
        let mut hist_field = match named {
            Named::Hitcount => HistField::hitcount(),
            Named::Cpu(alias) => HistField::cpu(alias),
            Named::Comm(alias) => HistField::comm(alias),
            Named::Timestamp => HistField::timestamp(),
            Named::Stacktrace => HistField::stack(),
            Named::Recorded(recorded) => HistField::recorded(recorded)
                .ok_or_else(|| trigger.own_error(HintText::NoFunction, field.name))?,
        };
        let function = hist_field.function;
        self.plan.timed |= function == Function::Timestamp;
        if modifier == Some(ModifierKind::Stacktrace) && function != Function::StoredStack {
            return Err(trigger.error(ErrorText::BadFieldModifier, field.atom));
        }
        if is_misplaced(modifier, function.is_stack(), place) {
            return Err(trigger.error(ErrorText::BadFieldModifier, culprit));
        }
        // C scales the addresses of strings.
        if let (true, Some(modifier)) = (function.is_string(), field.modifier) {
            if matches!(modifier.kind, ModifierKind::Log2 | ModifierKind::Buckets(_)) {
                return Err(trigger.error(ErrorText::BadFieldModifier, modifier.text));
            }
        }
        hist_field.unpadded = self.scope.event().system() == b"synthetic";
        // A stack in the record is shown as one even without the modifier.
        hist_field.modifier = match function {
            Function::StoredStack => modifier.or(Some(ModifierKind::Stacktrace)),
            _ => modifier,
        };
        Ok(hist_field)
    }

    /// Whether `name` is a field that [`HistField`] has no function for.
    pub(super) fn lacks_function_for(&self, name: &[u8]) -> Result<bool> {
        Ok(match self.named(name)? {
            Some(Named::Recorded(field)) => HistField::recorded(field).is_none(),
            _ => false,
        })
    }

    /// Looks up `name`.
    fn named(&self, name: &[u8]) -> Result<Option<Named>> {
        Ok(Some(match name {
            b"common_timestamp" => Named::Timestamp,
            b"common_stacktrace" => Named::Stacktrace,
            b"common_cpu" => Named::Cpu(None),
            b"common_comm" => Named::Comm(None),
            b"hitcount" => Named::Hitcount,
            _ => match self.scope.event().find(name)? {
                Some(field) if field.size > 0 => Named::Recorded(field),
                Some(field) => match field.filter {
                    FilterType::Cpu => Named::Cpu(Some(field)),
                    FilterType::Comm => Named::Comm(Some(field)),
                    FilterType::Stacktrace => Named::Stacktrace,
                    _ => return Ok(None),
                },
                None => return Ok(None),
            },
        }))
    }
}

/// Whether a field with `modifier`, or one that holds a `stack`, is not allowed in `place`
/// (`__create_val_field()`; the parser checks the rest).
fn is_misplaced(modifier: Option<ModifierKind>, stack: bool, place: Place) -> bool {
    use ModifierKind::*;
    match place {
        Place::Value => {
            stack
                || matches!(
                    modifier,
                    Some(Buckets(_) | Log2 | Sym | SymOffset | Syscall)
                )
        }
        Place::Variable => matches!(modifier, Some(Buckets(_) | Log2 | Graph | Percent)),
        Place::Key | Place::Operand => false,
    }
}

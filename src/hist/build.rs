// SPDX-License-Identifier: GPL-2.0

//! Makes the plan of a histogram from the syntax tree of a trigger.
//!
//! Checks are in C's order (`create_hist_data()`), because only the first error is reported. What C supports and
//! this does not yet is refused last, so that errors in such a trigger are still reported.

use kernel::prelude::*;

use super::field::Function;
use super::field::HistField;
use super::limits;
use super::program;
use super::program::Program;
use super::Plan;
use super::Scope;
use super::SortKey;
use crate::event::Clock;
use crate::event::EventField;
use crate::event::FilterType;
use crate::trigger::ActionHandler;
use crate::trigger::Error;
use crate::trigger::ErrorText;
use crate::trigger::Expr;
use crate::trigger::FieldRef;
use crate::trigger::ModifierKind;
use crate::trigger::Operator;
use crate::trigger::Order;
use crate::trigger::Place;
use crate::trigger::Span;
use crate::trigger::Trigger;
use crate::trigger::Unsupported;
use crate::trigger::VarRef;
use crate::trigger::MAP_BITS_DEFAULT;

/// See [`Plan::new`].
pub(super) fn plan(scope: &dyn Scope, trigger: &Trigger) -> Result<Plan, Error> {
    let mut builder = Builder {
        scope,
        trigger,
        refusal: None,
        fields: KVec::new(),
        n_vals: 0,
        key_size: 0,
    };
    builder.actions()?;
    builder.vals()?;
    builder.vars()?;
    builder.keys()?;
    let sort = builder.sort()?;
    if let Some(refusal) = builder.refusal {
        return Err(refusal);
    }
    let clock = trigger.clock.map_or(Some(Clock::Global), |clock| {
        Clock::new(trigger.bytes(clock))
    });
    // An unknown clock is reported by `Plan::check_clock()`, after all else.
    let clock = clock.unwrap_or(Clock::Global);
    let timed = builder.fields.iter().any(|field| field.is_time(false));
    Ok(Plan {
        clock: timed.then_some(clock),
        program: Program::compile(&builder.fields, builder.n_vals, clock)?,
        fields: builder.fields,
        n_vals: builder.n_vals,
        sort,
        bits: trigger.size.map_or(MAP_BITS_DEFAULT, |size| size.bits),
        nohitcount: trigger.nohitcount.is_some(),
    })
}

struct Builder<'a> {
    scope: &'a dyn Scope,
    trigger: &'a Trigger,
    /// The first unsupported construct.
    refusal: Option<Error>,
    fields: KVec<HistField>,
    n_vals: usize,
    /// Bytes of the keys so far, as C lays them out.
    key_size: u32,
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

impl Builder<'_> {
    fn refuse(&mut self, what: Unsupported, construct: Span) {
        let refusal = self.trigger.unsupported(what, construct);
        self.refusal.get_or_insert(refusal);
    }

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
            action.act.as_ref().map_err(|&error| error)?;
            self.refuse(Unsupported::Actions, action.text);
        }
        Ok(())
    }

    fn vals(&mut self) -> Result<(), Error> {
        self.fields.push(HistField::hitcount(), GFP_KERNEL)?;
        // The first column is that of the hitcount, by whatever name.
        let mut columns = 1;
        for expr in self.trigger.vals.iter() {
            let expr = expr?;
            let field = self.expr(expr, Place::Value)?;
            // C sums up the addresses of strings.
            if field.function.is_string() {
                self.refuse(Unsupported::Values, expr.text());
            }
            let column = match field.function {
                Function::Counter => 0,
                _ => columns,
            };
            columns = columns.max(column + 1);
            self.fields.push(field.into_value(column), GFP_KERNEL)?;
        }
        self.n_vals = self.fields.len();
        Ok(())
    }

    fn vars(&mut self) -> Result<(), Error> {
        for var in self.trigger.vars.iter() {
            let var = var?;
            self.expr(&var.expr, Place::Variable)?;
            self.refuse(Unsupported::Variables, var.text);
        }
        Ok(())
    }

    fn keys(&mut self) -> Result<(), Error> {
        // What C's keys take in addition: a stack in the record is a string there, without `.stacktrace`.
        let mut more = 0;
        for expr in self.trigger.keys.iter() {
            let expr = expr?;
            let key = self.expr(expr, Place::Key)?;
            let offset = self.key_size;
            self.key_size += key.size.next_multiple_of(limits::KEY_ALIGN);
            if let (Expr::Field(field), Function::StoredStack) = (expr, key.function) {
                if field.modifier.is_none() {
                    more += limits::STRING - key.size;
                }
            }
            if self.key_size + more > limits::KEY_SIZE {
                return Err(Error::silent(EINVAL));
            }
            self.fields.push(key.into_key(offset), GFP_KERNEL)?;
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
            let called = |name, of: fn(&HistField) -> &[u8]| {
                (1..self.fields.len()).find(|&i| of(&self.fields[i]) == name)
            };
            let found = match name {
                b"hitcount" => Some(0),
                _ => called(name, HistField::name)
                    .and_then(|i| called(self.fields[i].command_name(), HistField::command_name)),
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
    fn expr(&mut self, expr: &Expr, place: Place) -> Result<HistField, Error> {
        match expr {
            Expr::Bad { error, .. } => Err(*error),
            Expr::Field(field) => self.field(field, place, expr.remnant()),
            Expr::Literal { value, .. } => Ok(HistField::literal(*value)),
            Expr::Reference(reference) => match self.definition(reference) {
                Some(text) => self.field_of_text(text, place, expr.remnant()),
                None => Err(self.not_found(reference, place)),
            },
            Expr::Stacktrace { .. } => Ok(HistField::stack()),
            Expr::Negation { operand, .. } => self.negative(operand),
            Expr::Binary {
                operator,
                left,
                right,
                ..
            } => self.binary(left, *operator, right),
        }
    }

    // Operands are resolved recursively. What needs much of the kernel's stack is in functions that are not inlined,
    // so that not each level of the recursion has it.

    /// The definition of a variable of the same trigger (`local_field_var_ref()`).
    #[inline(never)]
    fn definition(&self, reference: &VarRef) -> Option<Span> {
        let trigger = self.trigger;
        let here = reference.qualifier.is_none_or(|event| {
            trigger.bytes(event.system) == self.scope.event().system()
                && trigger.bytes(event.event) == self.scope.event().name()
        });
        match here {
            true => trigger.substitute(trigger.bytes(reference.name)),
            false => None,
        }
    }

    /// The errors for a variable that does not exist: C then looks for a field of that name, and reports that, too.
    #[inline(never)]
    fn not_found(&self, reference: &VarRef, place: Place) -> Error {
        let trigger = self.trigger;
        let error = match trigger.field(reference.atom, place) {
            Ok(field) => trigger.error(ErrorText::FieldNotFound, field.name),
            Err(error) => error,
        };
        error.after(trigger.error(ErrorText::VarNotFound, reference.name))
    }

    #[inline(never)]
    fn field_of_text(
        &mut self,
        text: Span,
        place: Place,
        culprit: Span,
    ) -> Result<HistField, Error> {
        let field = self.trigger.field(text, place)?;
        self.field(&field, place, culprit)
    }

    #[inline(never)]
    fn negative(&mut self, operand: &Expr) -> Result<HistField, Error> {
        computed(HistField::negative(self.operand(operand)?)?)
    }

    #[inline(never)]
    fn binary(
        &mut self,
        left: &Expr,
        operator: Operator,
        right: &Expr,
    ) -> Result<HistField, Error> {
        let culprit = right.remnant();
        let left = self.operand(left)?;
        let right = self.operand(right)?;
        if left.is_usecs() != right.is_usecs() {
            return Err(Error::new(ErrorText::TimestampMismatch, 0));
        }
        if operator == Operator::Over && right.function == Function::Const(0) {
            return Err(self.trigger.error(ErrorText::DivisionByZero, culprit));
        }
        if let (Function::Const(left), Function::Const(right)) = (left.function, right.function) {
            return Ok(HistField::literal(program::apply(operator, left, right)));
        }
        computed(HistField::binary(left, operator, right)?)
    }

    /// Resolves an operand. Strings are refused as in C; stacks, too, where C computes with their address.
    fn operand(&mut self, expr: &Expr) -> Result<HistField, Error> {
        let operand = self.expr(expr, Place::Operand)?;
        if operand.function.is_string() || operand.function.is_stack() {
            let text = ErrorText::InvalidStrOperand;
            return Err(self.trigger.error(text, expr.remnant()));
        }
        Ok(operand)
    }

    /// Resolves a field (`parse_field()`, `create_hist_field()`). `culprit` is where the caret goes if it is not
    /// allowed in `place`.
    #[inline(never)]
    fn field(&mut self, field: &FieldRef, place: Place, culprit: Span) -> Result<HistField, Error> {
        let trigger = self.trigger;
        let Some(named) = self.named(trigger.bytes(field.name))? else {
            return Err(trigger.error(ErrorText::FieldNotFound, field.name));
        };
        let modifier = field.modifier.map(|modifier| modifier.kind);
        let mut hist_field = match named {
            Named::Hitcount => HistField::hitcount(),
            Named::Cpu(alias) => HistField::cpu(alias),
            Named::Comm(alias) => HistField::comm(alias),
            Named::Timestamp => HistField::timestamp(),
            Named::Stacktrace => HistField::stack(),
            Named::Recorded(recorded) => {
                HistField::recorded(recorded).ok_or(Error::silent(ENOMEM))?
            }
        };
        let function = hist_field.function;
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
        // A stack in the record is shown as one even without the modifier.
        hist_field.modifier = match function {
            Function::StoredStack => modifier.or(Some(ModifierKind::Stacktrace)),
            _ => modifier,
        };
        Ok(hist_field)
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

/// Checks the length of an expression, for which C has a string of fixed size.
fn computed(field: HistField) -> Result<HistField, Error> {
    match field.name().len() < limits::STRING as usize {
        true => Ok(field),
        false => Err(Error::silent(E2BIG)),
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

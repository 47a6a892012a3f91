// SPDX-License-Identifier: GPL-2.0

//! Resolves keys, values, definitions of variables, and operands.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    action::Handler,
    draft::{
        Draft,
        Stage, //
    },
    field::{
        Function,
        HistField, //
    },
    scope::EventVar,
    variable::{
        Reference,
        ValueKind,
        VarRef, //
    },
};
use crate::{
    event::{
        EventDesc,
        EventField,
        FilterType,
        Scale, //
    },
    limits::{
        self,
        OPERATORS_MAX,
        VARS_MAX, //
    },
    text::copy,
    trigger::{
        Error,
        ErrorText,
        Expr,
        FieldRef,
        HintText,
        Modifier,
        ModifierKind,
        Operator,
        Place,
        Span,
        VarRefText, //
    },
};

/// The definition of a variable of the same trigger.
enum Definition {
    /// A field, to be resolved where the variable is used.
    Text(Span),
    /// An expression.
    Computed(HistField),
}

/// The meaning of a field's name (`parse_field()`).
enum Named {
    Timestamp,
    Stacktrace,
    UserStack,
    Cpu(Option<EventField>),
    Comm(Option<EventField>),
    Cgroup,
    Tgid,
    Ppid,
    Event,
    Hitcount,
    Recorded(EventField),
}

impl Draft<'_> {
    /// Resolves a key, a value, the definition of a variable, or an operand of one of these
    /// (`parse_expr()`).
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
            Expr::Parens {
                operand, modifier, ..
            } => self.parens(operand, *modifier, expr.text()),
            Expr::Binary {
                operator,
                left,
                right,
                ..
            } => self.binary(left, *operator, right, expr.text()),
        }
    }

    // Operands are resolved recursively. Code that needs much of the kernel's stack is in functions
    // that are not inlined, so that not each level of the recursion takes it.

    /// The definition of a variable of the same trigger (`local_field_var_ref()`). Fails with
    /// `ENOMEM`.
    #[inline(never)]
    fn definition(&self, reference: &VarRefText) -> Result<Option<Definition>> {
        let trigger = self.trigger;
        // C has freed the definitions by then.
        if self.stage == Stage::Actions {
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
        // The expression of a variable that is resolved already. C has cut its text there.
        let computed = self.spec.find_var(name).map(|at| &self.spec.vars[at]);
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
                let var = found.reference(qualifier)?;
                self.var_ref(var, reference.text)?
            }
            None => None,
        };
        let Some(var_ref) = var_ref else {
            return Err(self.not_found(reference, place));
        };
        let stack = matches!(var_ref.kind, ValueKind::Stack | ValueKind::UserStack);
        if place == Place::Value && stack {
            return Err(trigger.error(ErrorText::BadFieldModifier, culprit));
        }
        Ok(HistField::var_ref(var_ref)?)
    }

    /// The errors for a variable that does not exist: C then looks for a field of that name, and
    /// reports that error, too.
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

    /// Finds a variable by its name (`find_event_var()`): in the event of `qualifier`, if given;
    /// otherwise in the events of `onmatch()`, and then in any event of the tracing directory. Logs
    /// an error if the name is ambiguous.
    #[inline(never)]
    pub(super) fn find_event_var(
        &self,
        qualifier: Option<[&[u8]; 2]>,
        name: &[u8],
    ) -> Result<Option<EventVar>> {
        if let Some([system, event]) = qualifier {
            let histograms = self.scope.histograms(system, event)?;
            return Ok(histograms.and_then(|histograms| EventVar::among(&histograms, name)));
        }
        let not_unique = || {
            let error = self.trigger.error_at(ErrorText::VarNotUnique, name);
            self.scope.log(error);
            Ok(None)
        };
        let mut found = None;
        for action in &self.spec.actions {
            let Handler::OnMatch { system, event } = &action.handler else {
                continue;
            };
            let histograms = self.scope.histograms(system, event)?.unwrap_or_default();
            if let Some(next) = EventVar::among(&histograms, name) {
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
            if let Some(next) = EventVar::of(histogram, name) {
                if of.replace(*event).is_some_and(|other| other != *event) {
                    return not_unique();
                }
                found.get_or_insert(next);
            }
        }
        Ok(found)
    }

    /// Returns the spec's only reference to the variable of `var`, adding it if needed
    /// (`create_var_ref()`). `None`: that would be too many references. `culprit` is where the
    /// trigger refers to it.
    pub(super) fn var_ref(
        &mut self,
        mut var: VarRef,
        culprit: Span,
    ) -> Result<Option<Arc<VarRef>>, Error> {
        let spec = &mut *self.spec;
        let refs = &mut spec.refs;
        if let Some(known) = refs.iter().find(|known| known.var.same(&var)) {
            return Ok(Some(known.var.clone()));
        }
        var.slot = refs.len();
        if var.slot == VARS_MAX {
            return Ok(None);
        }
        if let Some(home) = &var.home {
            spec.chain = spec.chain.max(home.spec().chain + 1);
            if spec.chain > limits::CHAIN_MAX {
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
        // C has cut the definitions of the variables resolved so far, and of this one, behind the
        // system of a qualified name. Values are resolved first.
        let cut = match self.stage {
            Stage::Values => 0,
            Stage::Fields | Stage::Actions => self.spec.vars.len() + 1,
        };
        if let Some(var) = self.trigger.reference_at(text, cut) {
            return Err(self.trigger.error(ErrorText::FieldNotFound, var.system));
        }
        let field = self.trigger.field(text, place)?;
        self.field(&field, place, culprit)
    }

    /// A value in parentheses.
    #[inline(never)]
    fn parens(
        &mut self,
        operand: &Expr,
        modifier: Option<Modifier>,
        text: Span,
    ) -> Result<HistField, Error> {
        use ModifierKind::{
            Graph,
            Hex,
            Percent, //
        };
        if let Some(modifier) = modifier {
            let kind = modifier.kind;
            let fits = matches!(kind, Hex | Percent | Graph) || kind.is_statistic();
            if !fits {
                return Err(self
                    .trigger
                    .error(ErrorText::BadFieldModifier, modifier.text));
            }
        }
        let mut operands = KVec::with_capacity(1, GFP_KERNEL)?;
        self.operand(operand, &mut operands)?;
        let field = HistField::parens(operands, modifier.map(|modifier| modifier.kind))?;
        self.check_computed(&field, text)?;
        Ok(field)
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

    /// Combines both operands by `operator`. `culprit` is the second one.
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
                self.spec.refs[var.slot].once = true;
            }
        }
        if operator == Operator::Over && right.constant() == Some(0) {
            return Err(self.trigger.error(ErrorText::DivisionByZero, culprit));
        }
        if let (Some(left), Some(right)) = (left.constant(), right.constant()) {
            return Ok(HistField::literal(operator.apply(left, right)));
        }
        let field = HistField::binary(operands, operator)?;
        self.check_computed(&field, text)?;
        Ok(field)
    }

    /// Checks the size of an expression, written as `text`. The parser has counted its operators,
    /// but not those in a variable's definition. C's buffer for the printed expression has a fixed
    /// size.
    fn check_computed(&self, field: &HistField, text: Span) -> Result<(), Error> {
        if field.operators() > OPERATORS_MAX {
            return Err(self.trigger.error(ErrorText::TooManySubexpr, text));
        }
        match field.name().len() < limits::STRING_MAX as usize {
            true => Ok(()),
            false => Err(self.trigger.own_error(HintText::ExprTooLong, text)),
        }
    }

    /// Resolves an operand, and adds it to `operands`: on the heap, since it has to wait until the
    /// others are resolved. Strings are refused as in C; so are stacks, and variables with a
    /// string, where C computes with their address.
    #[inline(never)]
    fn operand(&mut self, expr: &Expr, operands: &mut KVec<HistField>) -> Result<(), Error> {
        let operand = self.expr(expr, Place::Operand)?;
        if operand.kind() != ValueKind::Number {
            let text = ErrorText::InvalidStrOperand;
            return Err(self.trigger.error(text, expr.remnant()));
        }
        Ok(operands.push(operand, GFP_KERNEL)?)
    }

    /// Resolves a field (`parse_field()`, `create_hist_field()`). The caret is at `culprit` if it
    /// is not allowed in `place`.
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
        let recorded = matches!(named, Named::Recorded(_));
        let mut hist_field = match named {
            Named::Hitcount => HistField::hitcount(),
            Named::Cpu(alias) => HistField::cpu(alias),
            Named::Comm(alias) => HistField::comm(alias),
            Named::Cgroup if matches!(place, Place::Value | Place::Operand) => {
                return Err(trigger.own_error(HintText::GroupValue, field.name))
            }
            Named::Cgroup => HistField::cgroup(),
            Named::Tgid => HistField::tgid(),
            Named::Ppid => HistField::ppid(),
            Named::Event => {
                self.spec.event = event_name(self.scope.event())?;
                HistField::event()
            }
            Named::Timestamp => HistField::timestamp(),
            Named::Stacktrace => HistField::stack(),
            Named::UserStack if matches!(place, Place::Value | Place::Operand) => {
                return Err(trigger.own_error(HintText::UserStackValue, field.name))
            }
            Named::UserStack => HistField::user_stack(self.spec.ustack),
            Named::Recorded(recorded) => {
                let made = match modifier {
                    Some(ModifierKind::Ip) => HistField::address(recorded),
                    Some(ModifierKind::String) => HistField::pointed(recorded),
                    Some(ModifierKind::Cgroup) => HistField::cgroup_of(recorded),
                    Some(ModifierKind::Comm) => HistField::comm_of(recorded),
                    _ => HistField::recorded(recorded),
                };
                made.ok_or_else(|| match field.modifier {
                    Some(modifier) if modifier.kind.is_content() => trigger.unfit(modifier),
                    _ => trigger.own_error(HintText::NoFunction, field.name),
                })?
            }
        };
        let function = hist_field.function;
        self.spec.timed |= function == Function::Timestamp;
        if modifier == Some(ModifierKind::Stacktrace) && function != Function::StoredStack {
            return Err(trigger.error(ErrorText::BadFieldModifier, field.atom));
        }
        // The parser has checked the rest (`__create_val_field()`).
        let stack_value = function.is_stack() && place == Place::Value;
        if stack_value || modifier.is_some_and(|modifier| !modifier.is_allowed(place)) {
            return Err(trigger.error(ErrorText::BadFieldModifier, culprit));
        }
        // C scales the addresses of strings. The hitcount is not a number of a hit, so it has no
        // extremes or average.
        if let Some(modifier) = field.modifier {
            let scaled = function.is_string() && modifier.kind.scale(false) != Scale::One;
            let counted = function == Function::Counter && modifier.kind.is_statistic();
            let plain = matches!(function, Function::Cgroup | Function::UserStack);
            if scaled || counted || plain || modifier.kind.is_content() && !recorded {
                return Err(trigger.unfit(modifier));
            }
        }
        hist_field.unpadded = self.scope.event().system() == b"synthetic";
        // A stack in the record is shown as a stack even without the modifier.
        hist_field.modifier = match function {
            Function::StoredStack => modifier.or(Some(ModifierKind::Stacktrace)),
            _ => modifier,
        };
        Ok(hist_field)
    }

    /// Returns whether `name` is a field for whose type [`HistField`] lacks a function.
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
                // Names that C lacks come last: an event may have a field of that name.
                None => match name {
                    b"common_cgroup" => Named::Cgroup,
                    b"common_tgid" => Named::Tgid,
                    b"common_ppid" => Named::Ppid,
                    b"common_event" => Named::Event,
                    b"common_ustack" => Named::UserStack,
                    _ => return Ok(None),
                },
            },
        }))
    }
}

/// The name of an event, with its system. Fails with `ENOMEM`.
fn event_name(event: &EventDesc) -> Result<KVec<u8>> {
    let mut name = copy(event.system())?;
    name.push(b':', GFP_KERNEL)?;
    name.extend_from_slice(event.name(), GFP_KERNEL)?;
    Ok(name)
}

// SPDX-License-Identifier: GPL-2.0

//! The fields of a histogram: values and keys, and their names.

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::variable::{
    ValueKind,
    VarRef,
    Variable, //
};
use crate::{
    event::{
        address,
        AddressField,
        EventField,
        Exponential,
        FilterType,
        NumberType,
        Scale,
        Unit, //
    },
    limits,
    map::Column,
    text::Text,
    trigger::{
        ModifierKind,
        Operator, //
    },
};

/// The function that fetches a field from a hit. Named after the functions of C, which `hist_debug`
/// shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The number 1.
    Counter,
    /// A number from the trigger.
    Const(u64),
    /// The CPU's number.
    Cpu,
    /// The running task's name.
    Comm,
    /// The characters of an array in the record.
    String,
    /// The characters that a `__data_loc` field refers to.
    DynString,
    /// The characters that a `__rel_loc` field refers to.
    RelDynString,
    /// The characters at the address in the record.
    Pointed,
    /// A number in the record.
    Number(NumberType),
    /// An address in the record, as an IPv6 one.
    Address,
    /// The time of the hit, by the trigger's clock.
    Timestamp,
    /// The stack of the traced function.
    Stack,
    /// A stack in the record.
    StoredStack,
    /// The stack of the program that the task runs.
    UserStack,
    /// The comm of the process id in `common_pid.execname`, as a variable.
    Execname,
    /// The id of the running task's control group.
    Cgroup,
    /// The id of the control group of the task whose process id is a number in the record.
    CgroupOf(NumberType),
    /// The id of the running task's process.
    Tgid,
    /// The id of the process whose child the running task is.
    Ppid,
    /// The comm of the task whose process id is a number in the record.
    CommOf(NumberType),
    /// The name of the trigger's event.
    Event,
    /// The value of a variable: [`HistField::reference`].
    VarRef,
    /// Nothing: a variable that only actions set.
    Nothing,
    /// The negative of the operand.
    Negative,
    /// The result of an operator on the two operands.
    Binary(Operator),
    /// The operand, which is in parentheses.
    Parens,
}

impl Function {
    /// The name of C's function, without `hist_field_`. For a division by a constant see
    /// [`HistField::function_name`].
    pub fn name(self) -> &'static str {
        match self {
            // Shown by the function of its operand.
            Self::Parens => "parens",
            Self::Negative => "uminus",
            Self::Binary(Operator::Plus) => "plus",
            Self::Binary(Operator::Minus) => "minus",
            Self::Binary(Operator::Times) => "mult",
            Self::Binary(Operator::Over) => "div",
            Self::Counter => "counter",
            Self::Const(_) => "const",
            Self::Cpu => "cpu",
            Self::Timestamp => "timestamp",
            Self::Stack | Self::Nothing => "nop",
            Self::UserStack => "ustack",
            Self::Execname => "execname",
            Self::Cgroup | Self::CgroupOf(_) => "cgroup",
            Self::VarRef => "var_ref",
            Self::StoredStack => "stack",
            Self::Comm | Self::CommOf(_) => "comm",
            Self::Tgid => "tgid",
            Self::Ppid => "ppid",
            Self::Event => "event",
            Self::String => "string",
            Self::DynString => "dynstring",
            Self::RelDynString => "reldynstring",
            Self::Pointed => "pointed",
            Self::Address => "address",
            Self::Number(type_) => type_.name(),
        }
    }

    /// Returns whether it yields return addresses, or words of a program's stack, instead of a
    /// number.
    pub fn is_stack(self) -> bool {
        matches!(self, Self::Stack | Self::StoredStack | Self::UserStack)
    }

    /// Returns whether it yields characters instead of a number.
    pub fn is_string(self) -> bool {
        matches!(
            self,
            Self::Comm
                | Self::CommOf(_)
                | Self::Event
                | Self::String
                | Self::DynString
                | Self::RelDynString
                | Self::Pointed
                | Self::Execname
        )
    }
}

/// The use of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value, shown from a column of the entries.
    Value {
        /// Number of the column.
        column: usize,
    },
    /// Part of the key.
    Key,
    /// A variable of an entry.
    Variable,
}

/// How two entries are compared when sorted by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// All are equal.
    Nothing,
    /// As strings.
    Text,
    /// As numbers of this type, in the low bits of the 64 stored.
    Number(NumberType),
    /// By this many of the first bytes.
    Bytes(usize),
}

/// One field of a histogram (`struct hist_field`).
#[derive(Debug)]
pub struct HistField {
    /// Its use in the histogram.
    pub role: Role,
    /// The function that fetches it, before [`HistField::scale`].
    pub function: Function,
    /// How it is scaled or shown.
    pub modifier: Option<ModifierKind>,
    /// The operands, if it is computed.
    pub operands: KVec<HistField>,
    /// The expression, as it is written in a trigger.
    text: Text,
    /// The event's field, if it has one. The aliases of `common_cpu` and `common_comm` are fields,
    /// too, without bytes in the record.
    pub event_field: Option<EventField>,
    /// Size in bytes; for keys a multiple of [`limits::KEY_ALIGN`].
    pub size: u32,
    /// Offset of a key in the keys.
    pub offset: u32,
    /// Whether an array of characters may have arbitrary bytes behind its NUL, as in the records of
    /// synthetic events.
    pub unpadded: bool,
    /// The variable, if it is one.
    pub variable: Option<Variable>,
    /// The reference of a [`Function::VarRef`].
    pub reference: Option<Arc<VarRef>>,
}

impl HistField {
    /// Returns whether it reads a field of the record at these offsets.
    pub fn reads(&self, offsets: Range<u32>) -> bool {
        let there = |field: &EventField| field.size != 0 && offsets.contains(&field.offset);
        self.event_field.as_ref().is_some_and(there)
            || self
                .operands
                .iter()
                .any(|field| field.reads(offsets.clone()))
    }

    /// The number of hits of an entry.
    pub fn hitcount() -> Self {
        Self::plain(Function::Counter, 8, None)
    }

    /// A number from the trigger.
    pub fn literal(number: u64) -> Self {
        Self::plain(Function::Const(number), 8, None)
    }

    /// The CPU, under the name of `event_field` if that is given.
    pub fn cpu(event_field: Option<EventField>) -> Self {
        Self::plain(Function::Cpu, 4, event_field)
    }

    /// The running task's name, under the name of `event_field` if that is given.
    pub fn comm(event_field: Option<EventField>) -> Self {
        Self::plain(Function::Comm, limits::STRING_MAX, event_field)
    }

    /// The time of the hit, by the trigger's clock.
    pub fn timestamp() -> Self {
        Self::plain(Function::Timestamp, 8, None)
    }

    /// The stack of the traced function.
    pub fn stack() -> Self {
        Self::plain(Function::Stack, limits::STACK_SIZE, None)
    }

    /// The stack of the program that the task runs, of at most `depth` words.
    pub fn user_stack(depth: u32) -> Self {
        let size = depth * size_of::<u64>() as u32;
        Self::plain(Function::UserStack, size, None)
    }

    /// A field of the record. `None` if C lacks a function for its type.
    pub fn recorded(field: EventField) -> Option<Self> {
        let (function, size) = match field.filter {
            FilterType::TraceFn => return None,
            FilterType::Stacktrace => (Function::StoredStack, limits::STACK_SIZE),
            FilterType::StaticString => (Function::String, field.size),
            FilterType::DynString => (Function::DynString, limits::STRING_MAX),
            FilterType::RelDynString => (Function::RelDynString, limits::STRING_MAX),
            _ => {
                let type_ = NumberType::new(field.size, field.signed)?;
                (Function::Number(type_), field.size)
            }
        };
        Some(Self::plain(function, size, Some(field)))
    }

    /// The address in a field of the record. `None` if a field of this type holds none.
    pub fn address(field: EventField) -> Option<Self> {
        let (function, size) = match AddressField::new(&field)? {
            AddressField::V4(_) => (Function::Number(NumberType::U32), address::V4),
            _ => (Function::Address, address::V6),
        };
        Some(Self::plain(function, size as u32, Some(field)))
    }

    /// The id of the running task's process.
    pub fn tgid() -> Self {
        Self::plain(Function::Tgid, 4, None)
    }

    /// The id of the process whose child the running task is.
    pub fn ppid() -> Self {
        Self::plain(Function::Ppid, 4, None)
    }

    /// The name of the trigger's event.
    pub fn event() -> Self {
        Self::plain(Function::Event, limits::STRING_MAX, None)
    }

    /// The control group of the running task.
    pub fn cgroup() -> Self {
        Self::plain(Function::Cgroup, 8, None)
    }

    /// The control group of the task whose process id is in a field of the record. `None` if a
    /// field of this type holds none.
    pub fn cgroup_of(field: EventField) -> Option<Self> {
        let type_ = pid_type(&field)?;
        Some(Self::plain(Function::CgroupOf(type_), 8, Some(field)))
    }

    /// The comm of the task whose process id is in a field of the record. `None` if a field of this
    /// type holds none.
    pub fn comm_of(field: EventField) -> Option<Self> {
        let type_ = pid_type(&field)?;
        let size = limits::COMM_LEN as u32;
        Some(Self::plain(Function::CommOf(type_), size, Some(field)))
    }

    /// The string that a field of the record points to. `None` if the field is not a string
    /// pointer.
    pub fn pointed(field: EventField) -> Option<Self> {
        match (field.filter, field.size as usize) {
            (FilterType::PtrString, size) if size == size_of::<usize>() => {
                let size = limits::STRING_MAX;
                Some(Self::plain(Function::Pointed, size, Some(field)))
            }
            _ => None,
        }
    }

    /// The negation of the one operand. Fails with `ENOMEM`.
    pub fn negative(operands: KVec<Self>) -> Result<Self> {
        let mut text = Text::new();
        text.bytes(b"-(")?;
        for operand in &operands {
            operand.show(&mut text)?;
        }
        text.bytes(b")")?;
        Ok(Self::computed(Function::Negative, operands, text))
    }

    /// The result of `operator` on both operands. Fails with `ENOMEM`.
    pub fn binary(operands: KVec<Self>, operator: Operator) -> Result<Self> {
        let mut text = Text::new();
        for (i, operand) in operands.iter().enumerate() {
            if i > 0 {
                text.bytes(match operator {
                    Operator::Plus => b"+",
                    Operator::Minus => b"-",
                    Operator::Times => b"*",
                    Operator::Over => b"/",
                })?;
            }
            operand.show(&mut text)?;
        }
        Ok(Self::computed(Function::Binary(operator), operands, text))
    }

    /// The operand in parentheses, with a modifier. Fails with `ENOMEM`.
    pub fn parens(operands: KVec<Self>, modifier: Option<ModifierKind>) -> Result<Self> {
        let mut text = Text::new();
        text.bytes(b"(")?;
        for operand in &operands {
            operand.show(&mut text)?;
        }
        text.bytes(b")")?;
        Ok(Self {
            modifier,
            ..Self::computed(Function::Parens, operands, text)
        })
    }

    /// Its size is the first operand's.
    fn computed(function: Function, operands: KVec<Self>, text: Text) -> Self {
        let size = operands.first().map_or(0, |operand| operand.size);
        Self {
            operands,
            text,
            ..Self::plain(function, size, None)
        }
    }

    /// Copies the field, except its variable. Fails with `ENOMEM`.
    pub fn copy(&self) -> Result<Self> {
        let mut operands = KVec::with_capacity(self.operands.len(), GFP_KERNEL)?;
        for operand in &self.operands {
            operands.push(operand.copy()?, GFP_KERNEL)?;
        }
        let mut text = Text::new();
        text.bytes(self.text.as_bytes())?;
        let event_field = self.event_field.as_ref();
        Ok(Self {
            operands,
            text,
            modifier: self.modifier,
            unpadded: self.unpadded,
            reference: self.reference.clone(),
            ..Self::plain(
                self.function,
                self.size,
                event_field.map(EventField::try_clone).transpose()?,
            )
        })
    }

    fn plain(function: Function, size: u32, event_field: Option<EventField>) -> Self {
        Self {
            role: Role::Value { column: 0 },
            function,
            modifier: None,
            operands: KVec::new(),
            text: Text::new(),
            event_field,
            size,
            offset: 0,
            unpadded: false,
            variable: None,
            reference: None,
        }
    }

    /// The value of a variable. Fails with `ENOMEM`.
    pub fn var_ref(reference: Arc<VarRef>) -> Result<Self> {
        let mut text = Text::new();
        if let Some([system, event]) = &reference.qualifier {
            text.bytes(system)?;
            text.bytes(b".")?;
            text.bytes(event)?;
            text.bytes(b".$")?;
        }
        text.bytes(&reference.name)?;
        Ok(Self {
            text,
            reference: Some(reference.clone()),
            ..Self::plain(Function::VarRef, reference.size, None)
        })
    }

    /// A variable of 8 bytes that only actions set.
    pub fn tracked(variable: Variable) -> Self {
        Self {
            role: Role::Variable,
            variable: Some(variable),
            ..Self::plain(Function::Nothing, 8, None)
        }
    }

    /// Turns it into a variable.
    pub fn into_variable(mut self, variable: Variable) -> Self {
        self.role = Role::Variable;
        self.variable = Some(variable);
        self
    }

    /// The kind of its value.
    pub fn kind(&self) -> ValueKind {
        match (&self.reference, self.function) {
            (Some(reference), _) => reference.kind,
            _ if self.modifier == Some(ModifierKind::Ip) => ValueKind::Address,
            (None, Function::UserStack) => ValueKind::UserStack,
            (None, function) if function.is_stack() => ValueKind::Stack,
            (None, function) if function.is_string() => ValueKind::Text,
            (None, _) => ValueKind::Number,
        }
    }

    /// Its value, if that is a constant of the trigger.
    pub fn constant(&self) -> Option<u64> {
        match (self.function, &self.reference) {
            (Function::Const(number), _) => Some(number),
            (_, Some(reference)) => reference.constant,
            _ => None,
        }
    }

    /// Number of operators in it.
    pub fn operators(&self) -> usize {
        let operands = self.operands.iter().map(Self::operators);
        let own = matches!(self.function, Function::Negative | Function::Binary(_));
        operands.sum::<usize>() + usize::from(own)
    }

    /// Returns whether it is the id of a control group.
    pub fn is_group(&self) -> bool {
        matches!(self.function, Function::Cgroup | Function::CgroupOf(_))
    }

    /// Returns whether it is or has a reference to a variable.
    pub fn refers(&self) -> bool {
        self.reference.is_some() || self.operands.iter().any(Self::refers)
    }

    /// Returns whether C leaves it out of the `hist` file: expressions are summed up, and entries
    /// can be sorted by them, but they are not shown.
    pub fn is_hidden(&self) -> bool {
        matches!(self.function, Function::Negative | Function::Binary(_))
    }

    /// Returns whether it is the same number as `other` of the same trigger, whatever the columns.
    pub fn is_same_number(&self, other: &Self) -> bool {
        let alike = match (self.function, other.function) {
            (Function::Number(a), Function::Number(b)) => a == b,
            (Function::Parens, Function::Parens) => self.text.as_bytes() == other.text.as_bytes(),
            _ => false,
        };
        let offset = |field: &Self| field.event_field.as_ref().map(|field| field.offset);
        alike && offset(self) == offset(other)
    }

    /// The columns of a value.
    pub fn columns(&self) -> &'static [Column] {
        match self.modifier {
            Some(modifier) => modifier.columns(self.has_sign()),
            None => ModifierKind::columns_without(),
        }
    }

    /// The buckets of its distribution. `None`: it is not a distribution.
    pub fn distribution(&self, unit: Unit) -> Option<Exponential> {
        match self.modifier? {
            ModifierKind::Dist(scale) => Some(Exponential::new(scale, unit, self.has_sign())),
            _ => None,
        }
    }

    /// Maximum number of words of a stack.
    pub fn depth(&self) -> usize {
        self.size as usize / size_of::<u64>()
    }

    /// Turns it into a value that is shown from `column`.
    pub fn into_value(mut self, column: usize) -> Self {
        self.role = Role::Value { column };
        self
    }

    /// The column of a value; `None` for a key.
    pub fn column(&self) -> Option<usize> {
        match self.role {
            Role::Value { column } => Some(column),
            Role::Key | Role::Variable => None,
        }
    }

    /// Turns it into a key at `offset` in the keys.
    pub fn into_key(mut self, offset: u32) -> Self {
        self.role = Role::Key;
        self.size = self.size.next_multiple_of(limits::KEY_ALIGN);
        self.offset = offset;
        self
    }

    /// Its scale before it is stored. The hitcount and stacks are never scaled.
    pub fn scale(&self) -> Scale {
        match self.modifier {
            _ if self.function == Function::Counter || self.function.is_stack() => Scale::One,
            None => Scale::One,
            Some(modifier) => modifier.scale(self.has_sign()),
        }
    }

    /// Its name in the `hist` file and in `sort=`.
    pub fn name(&self) -> &[u8] {
        match (&self.event_field, self.function) {
            (Some(field), _) => &field.name,
            (None, Function::Cpu) => b"common_cpu",
            (None, Function::Comm) => b"common_comm",
            (None, Function::Counter) => b"hitcount",
            (None, Function::Timestamp) => b"common_timestamp",
            (None, Function::Stack) => b"common_stacktrace",
            (None, Function::UserStack) => b"common_ustack",
            (None, Function::Cgroup) => b"common_cgroup",
            (None, Function::Tgid) => b"common_tgid",
            (None, Function::Ppid) => b"common_ppid",
            (None, Function::Event) => b"common_event",
            (None, _) => self.text.as_bytes(),
        }
    }

    /// Its name in the `hist` file as a value: name, and modifier if that is a statistic.
    pub fn value_name(&self) -> (&[u8], &'static str) {
        let statistic = self.modifier.filter(|modifier| modifier.is_statistic());
        (self.name(), statistic.map_or("", ModifierKind::dotted))
    }

    /// Its name in the line of a trigger.
    pub fn command_name(&self) -> &[u8] {
        match self.function {
            Function::Cpu => b"common_cpu",
            Function::Comm => b"common_comm",
            _ => self.name(),
        }
    }

    /// Its type as `hist_debug` shows it.
    pub fn type_(&self) -> &[u8] {
        match (self.function, &self.event_field) {
            (Function::Counter | Function::Const(_) | Function::Timestamp, _) => b"u64",
            (Function::Cgroup | Function::CgroupOf(_), _) => b"u64",
            (Function::Stack | Function::StoredStack, _) => b"unsigned long[]",
            (Function::UserStack, _) => b"ustack",
            (Function::Cpu, _) => b"unsigned int",
            (Function::Comm | Function::Execname | Function::Pointed, _) => b"char[]",
            (Function::CommOf(_) | Function::Event, _) => b"char[]",
            // As of common_pid.
            (Function::Tgid | Function::Ppid, _) => b"int",
            (Function::Nothing, _) => b"u64",
            (_, Some(field)) => &field.type_,
            (_, None) => match &self.reference {
                Some(reference) => &reference.type_,
                None => self.operands.first().map_or(b"", Self::type_),
            },
        }
    }

    /// Returns whether its content is a signed number. C has another rule: see
    /// [`HistField::c_signed`].
    pub fn signed(&self) -> bool {
        self.scale() == Scale::One && self.has_sign()
    }

    /// Returns whether it is signed before it is scaled: it can be negative. A quotient cannot,
    /// since it is computed without signs, as in C.
    pub fn has_sign(&self) -> bool {
        let operand = || self.operands.iter().any(Self::signed);
        match self.function {
            Function::Number(type_) => type_.is_signed(),
            Function::VarRef => self.reference.as_ref().is_some_and(|var| var.signed),
            // The result of an expression of constants.
            Function::Const(number) => (number as i64) < 0,
            Function::Negative | Function::Binary(Operator::Minus) => true,
            Function::Tgid | Function::Ppid => true,
            Function::Binary(Operator::Over) => false,
            Function::Binary(Operator::Plus | Operator::Times) | Function::Parens => operand(),
            _ => false,
        }
    }

    /// `is_signed` of C's `struct hist_field`, by which entries are sorted, and fields of synthetic
    /// events are checked: an expression has the sign of its first operand.
    pub fn c_signed(&self) -> bool {
        let signed = match self.function {
            Function::Number(type_) => type_.is_signed(),
            Function::VarRef => self.reference.as_ref().is_some_and(|var| var.c_signed),
            Function::Tgid | Function::Ppid => true,
            _ => self.operands.first().is_some_and(Self::c_signed),
        };
        signed && self.scale() == Scale::One
    }

    /// Returns whether it is the time, or an expression with it; in microseconds if `usecs`.
    pub fn is_time(&self, usecs: bool) -> bool {
        let usecs_fit = !usecs || self.modifier == Some(ModifierKind::Usecs);
        (self.function == Function::Timestamp && usecs_fit)
            || self.operands.iter().any(|operand| operand.is_time(usecs))
    }

    /// Returns whether C treats it as a time in microseconds.
    pub fn is_usecs(&self) -> bool {
        self.modifier == Some(ModifierKind::Usecs)
            || self.reference.as_ref().is_some_and(|var| var.usecs)
            || self.operands.first().is_some_and(Self::is_usecs)
    }

    /// The name of C's function for it, without `hist_field_`.
    pub fn function_name(&self) -> &'static str {
        const LARGE: u64 = 1 << 20;
        let modifier = self.modifier.filter(|_| self.scale() != Scale::One);
        if let Some(function) = modifier.and_then(ModifierKind::function) {
            return function;
        }
        match (self.function, &self.operands[..]) {
            (Function::Parens, [operand]) => operand.function_name(),
            (Function::Binary(Operator::Over), [_, divisor]) => match divisor.constant() {
                Some(number) if number.is_power_of_two() => "div_power2",
                Some(number) if number > LARGE => "div_not_power2",
                Some(_) => "div_mult_shift",
                None => "div",
            },
            _ => self.function.name(),
        }
    }

    /// How entries are compared by this key (`create_tracing_map_fields()`).
    pub fn compare(&self) -> Compare {
        let number = |size, signed| match NumberType::new(size, signed) {
            Some(type_) => Compare::Number(type_),
            None => Compare::Nothing,
        };
        match (&self.event_field, self.function) {
            _ if matches!(self.modifier, Some(ModifierKind::Exponential(_))) => number(8, false),
            (_, function) if function.is_stack() => Compare::Nothing,
            _ if self.modifier == Some(ModifierKind::Ip) => Compare::Bytes(self.address_size()),
            _ if self.is_group() => number(8, false),
            (_, Function::CommOf(_) | Function::Event) => Compare::Text,
            (None, _) | (_, Function::Cpu) => number(self.size, self.c_signed()),
            (Some(field), _) if field.filter.is_string() => Compare::Text,
            (Some(field), _) => number(field.size, field.signed),
        }
    }

    /// Size of its address in bytes.
    pub fn address_size(&self) -> usize {
        match self.function {
            Function::Number(_) => address::V4,
            _ => address::V6,
        }
    }

    /// Appends the field as it is written inside an expression. Fails with `ENOMEM`.
    pub fn show(&self, out: &mut Text) -> Result {
        self.show_as(out, self.name())
    }

    /// Appends the field as it is written in a trigger under the name `name`. Fails with `ENOMEM`.
    pub fn show_as(&self, out: &mut Text, name: &[u8]) -> Result {
        let qualified = |var: &Arc<VarRef>| var.qualifier.is_some();
        match (self.function, &self.reference) {
            (Function::Const(number), _) => out.format(format_args!("{number}"))?,
            (_, Some(var)) if !qualified(var) => {
                out.bytes(b"$")?;
                out.bytes(name)?;
            }
            _ => out.bytes(name)?,
        }
        self.show_modifier(out)
    }

    /// Appends its modifier as it is written in a trigger. Fails with `ENOMEM`.
    fn show_modifier(&self, out: &mut Text) -> Result {
        let Some(modifier) = self.modifier else {
            return Ok(());
        };
        out.bytes(modifier.dotted().as_bytes())?;
        match modifier.number() {
            Some(number) => out.format(format_args!("={number}")),
            None => Ok(()),
        }
    }

    /// Returns whether its references hold the same kind of number as the references of `other`,
    /// which [matches](Self::matches) it: the same bits may stand for another number.
    pub fn holds_the_same(&self, other: &Self) -> bool {
        let references = match (&self.reference, &other.reference) {
            (Some(a), Some(b)) => a.kind == b.kind && a.signed == b.signed,
            _ => true,
        };
        let mut operands = self.operands.iter().zip(&other.operands);
        references && operands.all(|(a, b)| a.holds_the_same(b))
    }

    /// Returns whether it is the same field as `other` of another trigger (`hist_trigger_match()`).
    /// The aliases of the CPU and of the comm are the same: the line of a trigger shows one of them
    /// only, and has to match.
    pub fn matches(&self, other: &Self) -> bool {
        let fields_match = match (&self.event_field, &other.event_field) {
            _ if matches!(self.function, Function::Cpu | Function::Comm) => true,
            (Some(a), Some(b)) => a.same(b),
            (None, None) => true,
            _ => false,
        };
        fields_match
            && self.role == other.role
            && self.variable == other.variable
            && match (&self.reference, &other.reference) {
                (Some(a), Some(b)) => a.matches(b),
                (None, None) => true,
                _ => false,
            }
            && self.function == other.function
            && self.modifier == other.modifier
            && self.size == other.size
            && self.offset == other.offset
            && self.operands.len() == other.operands.len()
            && self
                .operands
                .iter()
                .zip(&other.operands)
                .all(|(a, b)| a.matches(b))
    }
}

/// The type of a field that may hold a process id; `None` for other fields.
fn pid_type(field: &EventField) -> Option<NumberType> {
    let type_ = NumberType::new(field.size, field.signed)?;
    let fits = matches!(type_, NumberType::S32 | NumberType::U32);
    (fits && field.filter == FilterType::Other).then_some(type_)
}

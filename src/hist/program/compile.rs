// SPDX-License-Identifier: GPL-2.0

//! Compiles the spec of a trigger to the program of its hits.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    code::{
        ActionCode,
        Cell,
        Import,
        Program,
        TraceValues,
        TrackCode,
        VarStore,
        WideStore, //
    },
    content::Content,
    key::{
        KeyPart,
        KeyReader,
        LookupKey, //
    },
    number::{
        ColumnValue,
        DistributionCode,
        Operand,
        Step,
        TaskNumber,
        Value,
        DEPTH, //
    },
};
use crate::{
    event::{
        address::V6,
        AddressField,
        Number,
        NumberType,
        Scale, //
    },
    hist::spec::{
        action::Handler,
        field::{
            Function,
            HistField, //
        },
        target::{
            SynthTarget,
            Target,
            Targets, //
        },
        variable::{
            text_size,
            ValueKind, //
        },
        Spec, //
    },
    limits::{
        COMM_LEN,
        STACK_DEPTH,
        VARS_MAX,
        WIDE_WORDS, //
    },
    map::{
        Column,
        ColumnSet, //
    },
    text::copy,
    trigger::ModifierKind, //
};

impl Program {
    /// Compiles `spec`. `targets` are the targets of its actions. Fails with `ENOMEM`, and with
    /// `EINVAL` for a value that is not a number.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    pub(in crate::hist) fn compile(spec: &Spec, targets: &Targets) -> Result<Self> {
        let mut compiler = Compiler::new(spec)?;
        compiler.add_columns()?;
        compiler.add_keys()?;
        compiler.add_imports()?;
        compiler.add_variables()?;
        compiler.add_saved()?;
        compiler.add_actions(targets)?;
        compiler.finish(targets)
    }

    /// Creates a program that counts all hits in one element. Fails with `ENOMEM`.
    #[inline(never)]
    fn empty() -> Result<KBox<Self>> {
        let program = Self {
            key: KeyReader::Parts,
            parts: KVec::new(),
            interned: KVec::new(),
            key_size: 0,
            columns: KVec::new(),
            values: KVec::new(),
            on: None,
            pid: None,
            imports: KVec::new(),
            stores: KVec::new(),
            wide_stores: KVec::new(),
            cells: KVec::new(),
            wide: KVec::new(),
            saved: KVec::new(),
            actions: KVec::new(),
            event: KVec::new(),
            groups: KVec::new(),
            leaf: false,
            code: KVec::new(),
        };
        Ok(KBox::new(program, GFP_KERNEL)?)
    }
}

/// A program that is being compiled.
struct Compiler<'a> {
    spec: &'a Spec,
    program: KBox<Program>,
    /// The operand that reads the time.
    time: Operand,
}

impl<'a> Compiler<'a> {
    fn new(spec: &'a Spec) -> Result<Self> {
        // As in C, one `.usecs` applies to all times of the histogram.
        let usecs = spec.all_fields().any(|field| field.is_time(true));
        Ok(Self {
            spec,
            program: Program::empty()?,
            time: match usecs && spec.clock.in_ns() {
                true => Operand::TimeInUsecs(spec.clock),
                false => Operand::Time(spec.clock),
            },
        })
    }

    /// Returns whether a hit does more than update the columns of its element.
    fn has_variables(&self) -> bool {
        self.spec.has_vars() || !self.spec.actions.is_empty()
    }

    fn add_columns(&mut self) -> Result {
        self.program.columns.push(Column::Hits, GFP_KERNEL)?;
        let mut distributions = 0..;
        let mut last: Option<&HistField> = None;
        for field in &self.spec.vals {
            // Values may share a column.
            if field.column() != Some(self.program.columns.len()) {
                continue;
            }
            let columns = field.columns();
            self.program
                .columns
                .extend_from_slice(columns, GFP_KERNEL)?;
            let distribution = field.distribution(self.spec.distributions.unit);
            let distribution = distribution.and_then(|buckets| {
                let number = distributions.next()?;
                Some(DistributionCode { buckets, number })
            });
            // Read the number once for both.
            let same = last.replace(field);
            let same = same.is_some_and(|last| last.is_same_number(field));
            if same && distribution.is_none() {
                let program = &mut *self.program;
                if let Some(value) = program.values.last_mut() {
                    let first = program.columns.len() - columns.len() - value.columns.len();
                    value.columns = ColumnSet::of(&program.columns[first..]);
                    continue;
                }
            }
            let Content::Number(value) = self.content(field)? else {
                return Err(EINVAL);
            };
            let value = ColumnValue {
                value,
                columns: ColumnSet::of(columns),
                distribution,
            };
            self.program.values.push(value, GFP_KERNEL)?;
        }
        Ok(())
    }

    fn add_keys(&mut self) -> Result {
        (self.program.parts, self.program.key_size) = self.key_parts(&self.spec.keys)?;
        let parts = self.program.parts.iter().zip(&self.spec.keys);
        let pid = |(part, field): (&KeyPart, &HistField)| match (part.content, field.modifier) {
            (Content::Number(number), Some(ModifierKind::Execname)) => Some(number),
            _ => None,
        };
        self.program.pid = parts.filter_map(pid).next_back();
        if !self.spec.on.is_empty() {
            let (parts, size) = self.key_parts(&self.spec.on)?;
            self.program.on = Some(LookupKey::new(parts, size));
        }
        self.intern_stacks()
    }

    /// Lays out the key with the numbers of stacks. With variables it has their words: other
    /// histograms look it up, to which the numbers mean nothing.
    fn intern_stacks(&mut self) -> Result {
        let has_variables = self.has_variables();
        let Program {
            parts, interned, ..
        } = &mut *self.program;
        let interns = match &parts[..] {
            [part] => part.is_long(),
            parts => parts.iter().any(KeyPart::is_stack),
        };
        if has_variables || !interns {
            return Ok(());
        }
        let mut at = 0;
        for part in parts {
            let len = match part.is_stack() {
                true => size_of::<u64>(),
                false => part.len,
            };
            interned.push(KeyPart { at, len, ..*part }, GFP_KERNEL)?;
            at += len;
        }
        Ok(())
    }

    /// Returns the parts of a key of these fields, and its size in bytes.
    fn key_parts(&mut self, fields: &[HistField]) -> Result<(KVec<KeyPart>, usize)> {
        let mut parts = KVec::with_capacity(fields.len(), GFP_KERNEL)?;
        let mut at = 0;
        for field in fields {
            let content = self.content(field)?;
            let len = match content {
                Content::Number(_) => size_of::<u64>(),
                // In C, comms always have the size of the field. The map needs that only if other
                // histograms may look the key up.
                Content::Comm if !self.has_variables() => COMM_LEN,
                _ => field.size as usize,
            };
            parts.push(KeyPart { content, at, len }, GFP_KERNEL)?;
            at += len;
        }
        Ok((parts, at))
    }

    /// Compiles references to variables of other histograms.
    fn add_imports(&mut self) -> Result {
        for reference in &self.spec.refs {
            let Some(home) = &reference.var.home else {
                continue;
            };
            let before = self.program.imports.last();
            let import = Import {
                again: before.is_some_and(|before| Arc::ptr_eq(&before.home, home)),
                home: home.clone(),
                cell: match home.cell_of(reference.var.index).ok_or(EINVAL)? {
                    Cell::Number(number) if reference.once => Cell::Once(number),
                    cell => cell,
                },
                slot: reference.var.slot,
            };
            self.program.imports.push(import, GFP_KERNEL)?;
        }
        Ok(())
    }

    fn add_variables(&mut self) -> Result {
        for (var, field) in self.spec.vars.iter().enumerate() {
            let content = self.content(field)?;
            let cell = match content {
                Content::Number(value) => {
                    let mut refs = self.spec.refs.iter();
                    let slot = refs.position(|reference| reference.var.is_to(None, var));
                    let slot = slot.unwrap_or(usize::MAX);
                    let store = VarStore { var, value, slot };
                    self.program.stores.push(store, GFP_KERNEL)?;
                    Cell::Number(var)
                }
                content => {
                    let words = match field.kind() {
                        ValueKind::Text => text_size(field.size).div_ceil(8),
                        ValueKind::UserStack => WIDE_WORDS.max(1 + field.depth()),
                        _ => WIDE_WORDS,
                    };
                    let cell = self.add_wide(words)?;
                    let store = WideStore {
                        cell,
                        words,
                        content,
                    };
                    self.program.wide_stores.push(store, GFP_KERNEL)?;
                    Cell::Wide(cell)
                }
            };
            self.program.cells.push(cell, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Adds a wide cell. Returns its number.
    fn add_wide(&mut self, words: usize) -> Result<usize> {
        self.program.wide.push(words, GFP_KERNEL)?;
        Ok(self.program.wide.len() - 1)
    }

    fn add_saved(&mut self) -> Result {
        for var in &self.spec.save_vars {
            let words = match var.value.kind() {
                ValueKind::Number | ValueKind::Stack => 1,
                ValueKind::UserStack => 1 + var.value.depth(),
                ValueKind::Address => V6 / size_of::<u64>(),
                ValueKind::Text => text_size(var.value.size).div_ceil(8),
            };
            let content = self.content(&var.value)?;
            self.program.saved.push((content, words), GFP_KERNEL)?;
        }
        Ok(())
    }

    fn add_actions(&mut self, targets: &Targets) -> Result {
        for (action, target) in self.spec.actions.iter().zip(&targets.0) {
            let trace = match target {
                Target::Trace(event) => self.trace(&action.slots, &**event)?,
                Target::Save | Target::Snapshot(_) => TraceValues::default(),
            };
            let track = match &action.track {
                Some(track) => {
                    let saved = match target {
                        Target::Save => self.program.saved.iter().map(|(_, words)| words).sum(),
                        Target::Trace(_) | Target::Snapshot(_) => 0,
                    };
                    Some(TrackCode {
                        slot: track.var_ref.slot,
                        larger: matches!(action.handler, Handler::OnMax { .. }),
                        cell: self.add_wide(1 + saved)?,
                    })
                }
                None => None,
            };
            let code = ActionCode { track, trace };
            self.program.actions.push(code, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Compiles `trace()` of `event` with the references in `slots`. For a variable of this
    /// histogram, the event gets the value that this hit sets it to: another hit may set the
    /// variable meanwhile.
    fn trace(&mut self, slots: &[usize], event: &dyn SynthTarget) -> Result<TraceValues> {
        let mut values = TraceValues::default();
        for (&slot, field) in slots.iter().zip(event.fields()) {
            let var = &self.spec.refs[slot].var;
            let own = match var.home {
                Some(_) => None,
                None => Some(self.spec.var_value(var.index).ok_or(EINVAL)?),
            };
            match (var.kind, own) {
                (ValueKind::Number, Some(own)) if own.variable.is_none() => {
                    add_once(&mut values.numbers, slot, || match self.content(own)? {
                        Content::Number(value) => Ok(value),
                        _ => Err(EINVAL),
                    })?;
                }
                (ValueKind::Number, _) => (),
                (_, Some(own)) => add_once(&mut values.wide, slot, || self.content(own))?,
                (_, None) => add_once(&mut values.wide, slot, || Ok(Content::Imported(slot)))?,
            }
            let val = match (var.kind, field.kind) {
                (ValueKind::Number, ValueKind::Text) => {
                    let val = VARS_MAX + slot;
                    add_once(&mut values.wide, val, || Ok(Content::Pointed(slot)))?;
                    val
                }
                _ => slot,
            };
            values.idx.push(val as u32, GFP_KERNEL)?;
        }
        Ok(values)
    }

    /// Chooses how the key is read. The program is complete then.
    fn finish(mut self, targets: &Targets) -> Result<Program> {
        let (variables, spec) = (self.has_variables(), self.spec);
        let program = &mut *self.program;
        let mut homes = spec.refs.iter().flat_map(|reference| &reference.var.home);
        let unreachable = homes.any(|home| home.spec().c_key_size() > spec.c_lookup_size());
        program.key = match &program.on {
            _ if unreachable => KeyReader::Unreachable,
            _ if !program.groups.is_empty() => {
                let only_key = program.has_groups_in_keys_only();
                KeyReader::with_groups(&program.parts, variables, only_key)
            }
            Some(on) => KeyReader::joined(&program.parts, on, spec.refs.len()),
            None => KeyReader::new(&program.parts, variables, spec.refs.len()),
        };
        let on = program.on.iter().flat_map(|on| on.parts.iter());
        let parts = Iterator::chain(program.parts.iter(), on).map(|part| &part.content);
        let stores = program.wide_stores.iter().map(|store| &store.content);
        let saved = program.saved.iter().map(|(content, _)| content);
        let mut contents = Iterator::chain(parts, Iterator::chain(stores, saved));
        let saves = |target: &Target| matches!(target, Target::Save);
        let nests = |content: &Content| {
            matches!(
                content,
                Content::Stack
                    | Content::UserStack(_)
                    | Content::LongUserStack(_)
                    | Content::RecordedPointer(_)
            )
        };
        program.leaf = !contents.any(nests) && targets.0.iter().all(saves);
        Ok(KBox::into_inner(self.program))
    }

    /// Compiles the content of `field`. Fails with `ENOMEM`, and with `EINVAL` for an operand that
    /// is not a number.
    fn content(&mut self, field: &HistField) -> Result<Content> {
        let event_field = field.event_field.as_ref();
        let (offset, len) = event_field.map_or((0, 0), |f| (f.offset, f.size));
        Ok(match field.function {
            Function::Comm => Content::Comm,
            Function::Execname => {
                let type_ = NumberType::new(len, true).ok_or(EINVAL)?;
                Content::Execname(Value::Simple {
                    operand: Operand::Recorded(Number::new(type_, offset)),
                    scale: Scale::One,
                })
            }
            Function::VarRef if field.kind() != ValueKind::Number => {
                Content::Imported(field.reference.as_ref().map_or(0, |var| var.slot))
            }
            Function::String => Content::Array {
                offset,
                len,
                unpadded: field.unpadded,
            },
            Function::DynString => Content::DataLoc(offset),
            Function::RelDynString => Content::RelLoc(offset),
            Function::Pointed => Content::RecordedPointer(offset),
            Function::Address => {
                Content::Address(event_field.and_then(AddressField::new).ok_or(EINVAL)?)
            }
            Function::CommOf(type_) => Content::CommOf(Number::new(type_, offset)),
            Function::Event => {
                if self.program.event.is_empty() {
                    self.program.event = copy(&self.spec.event)?;
                }
                Content::Event
            }
            Function::Stack => Content::Stack,
            Function::StoredStack => Content::StoredStack(offset),
            Function::UserStack => match self.spec.ustack {
                depth if depth as usize <= STACK_DEPTH => Content::UserStack(depth),
                depth => Content::LongUserStack(depth),
            },
            _ => {
                let value = self.value(field)?;
                if let Some(task) = value.group() {
                    self.program.groups.push(task, GFP_KERNEL)?;
                }
                Content::Number(value)
            }
        })
    }

    /// Compiles `field` as a number. Appends to the code if it is a longer expression.
    fn value(&mut self, field: &HistField) -> Result<Value> {
        if let (Function::Parens, [inside]) = (field.function, &field.operands[..]) {
            return self.value(inside);
        }
        if let Some(operand) = self.operand(field) {
            let scale = field.scale();
            return Ok(Value::Simple { operand, scale });
        }
        if let Some(pair) = self.pair(field) {
            return Ok(pair);
        }
        let start = self.program.code.len();
        self.translate(field)?;
        let end = self.program.code.len();
        let reads = |step: &&Step| matches!(step, Step::Read(..));
        if self.program.code[start..end].iter().filter(reads).count() > DEPTH {
            return Err(EINVAL);
        }
        Ok(Value::Computed { start, end })
    }

    /// Returns the operand that a field is; `None` if it is an expression, or not a number.
    fn operand(&self, field: &HistField) -> Option<Operand> {
        let offset = field.event_field.as_ref().map_or(0, |f| f.offset);
        Some(match field.function {
            Function::Counter => Operand::Constant(1),
            Function::Const(number) => Operand::Constant(number),
            Function::Cpu => Operand::Cpu,
            Function::Timestamp => self.time,
            Function::Number(type_) => Operand::Recorded(Number::new(type_, offset)),
            Function::VarRef => Operand::Reference(field.reference.as_ref()?.slot),
            Function::Tgid => Operand::Task(TaskNumber::Tgid),
            Function::Ppid => Operand::Task(TaskNumber::Ppid),
            Function::Cgroup => Operand::Task(TaskNumber::Group(None)),
            Function::CgroupOf(type_) => {
                Operand::Task(TaskNumber::Group(Some(Number::new(type_, offset))))
            }
            _ => return None,
        })
    }

    /// Returns the expression that a field is, if its operands are two numbers that are not scaled.
    fn pair(&self, field: &HistField) -> Option<Value> {
        let (Function::Binary(operator), [left, right]) = (field.function, &field.operands[..])
        else {
            return None;
        };
        let number = |field: &HistField| {
            let operand = self.operand(field);
            operand.filter(|_| field.scale() == Scale::One)
        };
        Some(Value::Pair {
            operator,
            left: number(left)?,
            right: number(right)?,
        })
    }

    /// Appends the steps that compute `field`.
    fn translate(&mut self, field: &HistField) -> Result {
        for operand in &field.operands {
            self.translate(operand)?;
        }
        let step = match field.function {
            Function::Negative => Step::Negate,
            Function::Binary(operator) => Step::Apply(operator),
            _ => Step::Read(self.operand(field).ok_or(EINVAL)?, field.scale()),
        };
        Ok(self.program.code.push(step, GFP_KERNEL)?)
    }
}

/// Adds the result of `make` to `list` under `number`, if the list lacks that number.
fn add_once<T>(
    list: &mut KVec<(usize, T)>,
    number: usize,
    make: impl FnOnce() -> Result<T>,
) -> Result {
    if list.iter().all(|(other, _)| *other != number) {
        list.push((number, make()?), GFP_KERNEL)?;
    }
    Ok(())
}

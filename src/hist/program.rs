// SPDX-License-Identifier: GPL-2.0

//! The program of a histogram: from where a hit fetches each number and string, and where in the key it puts it.
//! Compiled when the histogram is built.

use core::cmp::min;

use kernel::prelude::*;
use kernel::sync::Arc;

use super::action::Handler;
use super::action::SynthEvent;
use super::action::Target;
use super::action::Targets;
use super::field::Function;
use super::field::HistField;
use super::limits;
use super::var::text_size;
use super::var::Held;
use super::Histogram;
use super::Plan;
use crate::event::hit::COMM_LEN;
use crate::event::hit::STACK_DEPTH;
use crate::event::number::Numbers;
use crate::event::Clock;
use crate::event::Hit;
use crate::event::Number;
use crate::event::NumberType;
use crate::event::Scale;
use crate::map::Column;
use crate::map::KeyWord;
use crate::map::OnceText;
use crate::map::RecordFields;
use crate::text::until_nul;
use crate::trigger::ModifierKind;
use crate::trigger::Operator;
use crate::trigger::OPERATORS_MAX;
use crate::trigger::VARS_MAX;

const NS_PER_US: u64 = 1000;

/// A number of a hit.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Constant(u64),
    Cpu,
    Time(Clock),
    TimeInUsecs(Clock),
    Recorded(Number),
    /// The value of the reference with this number.
    Reference(usize),
}

impl Operand {
    /// Reads it, sign-extended to 64 bits.
    #[inline(always)]
    pub(super) fn read(&self, hit: &Hit<'_>, vals: &[u64]) -> u64 {
        match *self {
            Self::Constant(number) => number,
            Self::Cpu => hit.cpu as u64,
            Self::Time(clock) => hit.context.time(clock),
            // Rounded as in C (`ns2usecs()`).
            Self::TimeInUsecs(clock) => {
                hit.context.time(clock).wrapping_add(NS_PER_US / 2) / NS_PER_US
            }
            Self::Recorded(number) => recorded_number(number, hit),
            Self::Reference(slot) => vals.get(slot).copied().unwrap_or(0),
        }
    }
}

/// Reads a number of the record, sign-extended to 64 bits.
#[inline(always)]
pub(super) fn recorded_number(number: Number, hit: &Hit<'_>) -> u64 {
    match (number.type_(), number.offset()) {
        // The most common types; a function for the others keeps callers short.
        (NumberType::S32, at) => hit.record.u32(at) as i32 as u64,
        (NumberType::U32, at) => hit.record.u32(at).into(),
        (NumberType::U64, at) => hit.record.u64(at),
        _ => read_number(number, hit),
    }
}

#[inline(never)]
fn read_number(number: Number, hit: &Hit<'_>) -> u64 {
    number.read(&hit.record)
}

/// A number that is stored: a part of the key, or what a column is updated with.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// A single number.
    Simple { operand: Operand, scale: Scale },
    /// The result of an operator on two numbers, as most expressions are.
    Pair {
        operator: Operator,
        left: Operand,
        right: Operand,
    },
    /// The result of the steps from `start` to `end`.
    Computed { start: usize, end: usize },
}

impl Value {
    const ONE: Self = Self::Simple {
        operand: Operand::Constant(1),
        scale: Scale::One,
    };
}

/// A step of an expression, in reverse Polish notation.
#[derive(Clone, Copy)]
enum Step {
    Read(Operand, Scale),
    Negate,
    Apply(Operator),
}

/// The maximum depth of the stack of an expression.
const DEPTH: usize = OPERATORS_MAX + 1;

/// The result of `operator` on two numbers. A division by zero yields all ones.
#[inline]
pub(super) fn apply(operator: Operator, left: u64, right: u64) -> u64 {
    match operator {
        Operator::Plus => left.wrapping_add(right),
        Operator::Minus => left.wrapping_sub(right),
        Operator::Times => left.wrapping_mul(right),
        Operator::Over => left.checked_div(right).unwrap_or(u64::MAX),
    }
}

/// Evaluates an expression.
fn compute(code: &[Step], hit: &Hit<'_>, vals: &[u64]) -> u64 {
    // The stack; its top is in `number`.
    let mut waiting = [0; DEPTH];
    let mut depth = 0;
    let mut number = 0;
    for step in code {
        match *step {
            Step::Read(next, scale) => {
                if let Some(place) = waiting.get_mut(depth) {
                    *place = number;
                    depth += 1;
                }
                number = scale.apply(next.read(hit, vals));
            }
            Step::Negate => number = number.wrapping_neg(),
            Step::Apply(operator) => {
                depth = depth.saturating_sub(1);
                let left = waiting.get(depth).copied().unwrap_or(0);
                number = apply(operator, left, number);
            }
        }
    }
    number
}

/// What is put into a part of the key, or stored as a variable.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Number(Value),
    Array {
        offset: u32,
        len: u32,
        /// What is behind its NUL does not count.
        unpadded: bool,
    },
    DataLoc(u32),
    RelLoc(u32),
    /// The characters at the address that is the value of the reference in this slot.
    Pointed(usize),
    Comm,
    /// The comm of the task with this process id, which is the current one.
    Execname(Value),
    Stack,
    StoredStack(u32),
    /// What another histogram's variable holds, by the slot of the reference: characters, or a stack.
    Other(usize),
}

/// The part of the map's key that a key field takes.
#[derive(Clone, Copy)]
pub(super) struct KeyPart {
    content: Content,
    /// Where it starts, a multiple of 8.
    pub(super) at: usize,
    /// How many bytes it takes, a multiple of 8.
    len: usize,
}

impl KeyPart {
    /// Its length without zeros at the end, as far as the record says that: a multiple of 8, and not 0.
    #[inline]
    fn used(&self, hit: &Hit<'_>) -> usize {
        let len = match self.content {
            Content::DataLoc(offset) => hit.record.data_loc(offset).len(),
            Content::RelLoc(offset) => hit.record.rel_loc(offset).len(),
            Content::StoredStack(offset) => hit.record.stack(offset, STACK_DEPTH).len(),
            _ => return self.len,
        };
        len.next_multiple_of(8).clamp(8, self.len)
    }

    /// Writes it to `key`, which is zero there, and may end behind [`KeyPart::used`] bytes.
    ///
    /// A string is copied in the length that the record has for it, with what follows its NUL. The last byte
    /// stays zero (`add_to_key()`).
    #[inline]
    fn put(&self, key: &mut [u8], program: &Program, hit: &Hit<'_>) {
        let Some(place) = key.get_mut(self.at..min(self.at + self.len, key.len())) else {
            return;
        };
        let comm;
        let string = match self.content {
            Content::Number(ref number) => {
                place.copy_from_slice(&program.read(number, hit, &[]).to_ne_bytes());
                return;
            }
            Content::Array {
                offset,
                len,
                unpadded,
            } => match hit.record.bytes(offset as usize, len as usize) {
                bytes if unpadded => until_nul(bytes),
                bytes => bytes,
            },
            Content::DataLoc(offset) => hit.record.data_loc(offset),
            Content::RelLoc(offset) => hit.record.rel_loc(offset),
            Content::Comm => {
                comm = hit.context.comm();
                until_nul(&comm)
            }
            Content::Stack => return put_stack(place, hit),
            Content::StoredStack(offset) => {
                let entries = hit.record.stack(offset, STACK_DEPTH);
                place[..entries.len()].copy_from_slice(entries);
                return;
            }
            // Not in keys.
            Content::Execname(_) | Content::Pointed(_) | Content::Other(_) => return,
        };
        let len = min(string.len(), min(self.len - 1, place.len()));
        place[..len].copy_from_slice(&string[..len]);
    }
}

/// Writes the stack of the traced function to `place`, which is zero.
#[inline(always)]
fn put_stack(place: &mut [u8], hit: &Hit<'_>) {
    let mut entries = [0; STACK_DEPTH];
    let len = hit.context.stack(&mut entries);
    for (bytes, entry) in place
        .chunks_exact_mut(8)
        .zip(&entries[..len.min(STACK_DEPTH)])
    {
        bytes.copy_from_slice(&entry.to_ne_bytes());
    }
}

/// The number of the record that `value` is, and its scale; `None` if it is something else.
fn recorded(value: Value) -> Option<(Number, Scale)> {
    match value {
        Value::Simple {
            operand: Operand::Recorded(number),
            scale,
        } => Some((number, scale)),
        _ => None,
    }
}

/// Appends the words that `part` is to those of a key; `false` if it is something else.
fn add_words(part: &KeyPart, key: &mut KVec<(KeyWord, Scale)>) -> Result<bool> {
    match part.content {
        Content::Number(value) => match recorded(value) {
            Some((number, scale)) => key.push((KeyWord::number(number), scale), GFP_KERNEL)?,
            None => return Ok(false),
        },
        // Of characters the last one is taken for a NUL, as [`KeyPart::put`] does it.
        Content::Array {
            offset,
            len,
            unpadded: false,
        } if len as usize == part.len && len >= 8 && len % 8 == 0 => {
            for at in (offset..offset + len - 8).step_by(8) {
                let word = KeyWord::number(Number::new(NumberType::U64, at));
                key.push((word, Scale::One), GFP_KERNEL)?;
            }
            key.push((KeyWord::tail(offset + len - 8), Scale::One), GFP_KERNEL)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The fields of the record that `parts` and `values` are; `None` if some are something else. Fails with
/// `ENOMEM`.
fn plain_fields(parts: &[KeyPart], values: &[Value]) -> Result<Option<RecordFields>> {
    let mut key = KVec::new();
    for part in parts {
        if !add_words(part, &mut key)? {
            return Ok(None);
        }
    }
    let mut sums = KVec::with_capacity(values.len(), GFP_KERNEL)?;
    for &value in values {
        let Some((number, Scale::One)) = recorded(value) else {
            return Ok(None);
        };
        sums.push(number, GFP_KERNEL)?;
    }
    Ok(RecordFields::new(&key, sums))
}

/// How a hit makes its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyShape {
    /// Key and values are plain fields of the record: [`Program::fields`].
    Record,
    /// The key is one number: [`Program::number`].
    Number,
    /// The parts of the key are put into a buffer.
    Parts,
    /// The key is one number of the record, [`Program::recorded`], and there are variables, references or actions: at
    /// most [`FEW_REFS`] references.
    RecordedFewRefs,
    /// The same, with more of them.
    RecordedVars,
    /// As `Parts`, and there are variables, references or actions.
    PartsVars,
}

/// See [`KeyShape::RecordedFewRefs`].
pub(super) const FEW_REFS: usize = 3;

/// Where an element has a variable.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// A variable of the map, which a reference unsets when it reads it.
    Once(usize),
    /// A variable of the map.
    Number(usize),
    /// A wide cell.
    Wide(usize),
}

/// A reference to a variable of another histogram, which a hit needs before it inserts its key.
pub(super) struct Import {
    pub(super) home: Arc<Histogram>,
    /// Whether it is to the same histogram as the one before.
    pub(super) again: bool,
    pub(super) cell: Cell,
    /// Where its value is put.
    pub(super) slot: usize,
}

/// A variable of the map, and the number that it is set to.
pub(super) struct Store {
    pub(super) var: usize,
    pub(super) value: Value,
    /// The reference of this histogram's actions to it. Larger than any if there is none.
    pub(super) slot: usize,
}

/// A wide cell of the map, of so many words, and the string or stack that it is set to.
pub(super) struct WideStore {
    pub(super) cell: usize,
    pub(super) words: usize,
    pub(super) content: Content,
}

/// When an action is done.
pub(super) enum When {
    Always,
    /// If a variable has changed, or is larger than before.
    Tracked(Track),
}

/// What `onmax()` and `onchange()` compare.
pub(super) struct Track {
    /// The slot of the reference to the variable.
    pub(super) slot: usize,
    /// Whether it has to be larger.
    pub(super) larger: bool,
    /// The number of the wide cell with its last value, which what the action saves is behind.
    pub(super) cell: usize,
}

/// What an action does, with its target.
pub(super) enum Effect {
    /// Saves [`Program::saved`] in the wide cell.
    Save,
    Snapshot,
    Trace {
        /// Which value each field of the synthetic event gets (`var_ref_idx[]`): that of the reference in this slot;
        /// or, [`VARS_MAX`] more, the characters at the address that is this value.
        idx: KVec<u32>,
        /// The slots of values that are numbers of this event.
        fields: KVec<(usize, Value)>,
        /// The values that are characters or stacks.
        wide: KVec<(usize, Content)>,
    },
}

/// An action as a hit executes it.
pub(super) struct CompiledAction {
    pub(super) when: When,
    pub(super) effect: Effect,
}

/// What a hit executes: how it makes its key, and what it updates the element with.
pub(super) struct Program {
    pub(super) shape: KeyShape,
    /// For the fast path: the fields of [`KeyShape::Record`], else none.
    pub(super) fields: RecordFields,
    /// The key, if it is one number, else anything.
    pub(super) number: Value,
    /// The key, if it is one number of the record, else anything.
    pub(super) recorded: Number,
    parts: KVec<KeyPart>,
    /// Bytes of a key in the map. Without variables fewer than in C for a comm, which takes 16.
    pub(super) key_size: usize,
    /// The columns of an element: the count of hits, and one for each of the values.
    pub(super) columns: KVec<Column>,
    pub(super) values: KVec<Value>,
    /// The process id, if its comm is stored as side data.
    pub(super) pid: Option<Value>,
    /// What is read of other histograms.
    pub(super) imports: KVec<Import>,
    /// Whether a reference is to a histogram with longer keys, so that no hit has its key. Such a program has the shape
    /// [`KeyShape::PartsVars`].
    pub(super) unreachable: bool,
    pub(super) stores: KVec<Store>,
    pub(super) wide_stores: KVec<WideStore>,
    /// Where an element has each variable.
    pub(super) cells: KVec<Cell>,
    /// Words of each wide cell of an element.
    pub(super) wide: KVec<usize>,
    /// What `save()` saves, each in so many words.
    pub(super) saved: KVec<(Content, usize)>,
    pub(super) actions: KVec<CompiledAction>,
    code: KVec<Step>,
}

/// Words of the string or stack that a variable holds: see [`text_size`].
pub const WIDE_WORDS: usize = limits::STRING as usize / 8;

impl Program {
    /// One that does nothing.
    pub(super) fn empty() -> Self {
        Self {
            shape: KeyShape::Parts,
            fields: RecordFields::none(),
            number: Value::ONE,
            recorded: Number::new(NumberType::U64, 0),
            parts: KVec::new(),
            key_size: 0,
            columns: KVec::new(),
            values: KVec::new(),
            pid: None,
            imports: KVec::new(),
            unreachable: false,
            stores: KVec::new(),
            wide_stores: KVec::new(),
            cells: KVec::new(),
            wide: KVec::new(),
            saved: KVec::new(),
            actions: KVec::new(),
            code: KVec::new(),
        }
    }

    /// Compiles `plan` to this program, which was empty. `targets` are what its actions call. Fails with `ENOMEM`, and
    /// with `EINVAL` for a value that is no number.
    #[inline(never)]
    pub(super) fn compile(&mut self, plan: &Plan, targets: &Targets) -> Result {
        // As in C, one `.usecs` applies to all times of the histogram.
        let time = match plan.contents().any(|field| field.is_time(true)) && plan.clock.in_ns() {
            true => Operand::TimeInUsecs(plan.clock),
            false => Operand::Time(plan.clock),
        };
        let (vals, keys) = (plan.vals(), plan.keys());
        let has_vars = plan.has_vars() || !plan.actions.is_empty();
        let mut code = KVec::new();
        let mut columns = KVec::with_capacity(vals.len(), GFP_KERNEL)?;
        let mut values = KVec::with_capacity(vals.len(), GFP_KERNEL)?;
        columns.push(Column::Hits, GFP_KERNEL)?;
        for field in vals {
            // Values may share a column.
            if field.column() != Some(columns.len()) {
                continue;
            }
            let Content::Number(value) = content(field, time, &mut code)? else {
                return Err(EINVAL);
            };
            columns.push(Column::Sum, GFP_KERNEL)?;
            values.push(value, GFP_KERNEL)?;
        }
        let mut parts = KVec::with_capacity(keys.len(), GFP_KERNEL)?;
        let mut at = 0;
        let mut pid = None;
        for field in keys {
            let content = content(field, time, &mut code)?;
            if let (Content::Number(number), Some(ModifierKind::Execname)) =
                (content, field.modifier)
            {
                pid = Some(number);
            }
            let len = match content {
                Content::Number(_) => size_of::<u64>(),
                // All that it takes in C only if other histograms may look it up.
                Content::Comm if !has_vars => COMM_LEN,
                _ => field.size as usize,
            };
            parts.push(KeyPart { content, at, len }, GFP_KERNEL)?;
            at += len;
        }
        let fields = match pid {
            None if !has_vars => plain_fields(&parts, &values)?,
            _ => None,
        };
        let number = match parts[..] {
            [KeyPart {
                content: Content::Number(number),
                ..
            }] => Some(number),
            _ => None,
        };
        let recorded = match number.and_then(recorded) {
            Some((number, Scale::One)) => Some(number),
            _ => None,
        };
        let mut homes = plan.refs.iter().flat_map(|reference| &reference.var.home);
        self.unreachable = homes.any(|home| home.plan().c_key_size() > plan.c_key_size());
        self.shape = match recorded.filter(|_| !self.unreachable) {
            Some(_) if has_vars && plan.refs.len() <= FEW_REFS => KeyShape::RecordedFewRefs,
            Some(_) if has_vars => KeyShape::RecordedVars,
            _ if has_vars => KeyShape::PartsVars,
            _ if fields.is_some() => KeyShape::Record,
            _ if number.is_some() => KeyShape::Number,
            _ => KeyShape::Parts,
        };
        if let Some(fields) = fields {
            self.fields = fields;
        }
        self.number = number.unwrap_or(self.number);
        self.recorded = recorded.unwrap_or(self.recorded);
        self.parts = parts;
        self.key_size = at;
        self.columns = columns;
        self.values = values;
        self.pid = pid;
        self.code = code;
        self.add_variables(plan, time)?;
        self.add_actions(plan, targets, time)
    }

    /// Compiles variables, and references to those of other histograms.
    fn add_variables(&mut self, plan: &Plan, time: Operand) -> Result {
        for reference in &plan.refs {
            let Some(home) = &reference.var.home else {
                continue;
            };
            let before = self.imports.last();
            let import = Import {
                again: before.is_some_and(|before| Arc::ptr_eq(&before.home, home)),
                home: home.clone(),
                cell: match home.cell_of(reference.var.index).ok_or(EINVAL)? {
                    Cell::Number(number) if reference.once => Cell::Once(number),
                    cell => cell,
                },
                slot: reference.var.slot,
            };
            self.imports.push(import, GFP_KERNEL)?;
        }
        for (var, field) in plan.vars().iter().enumerate() {
            let content = content(field, time, &mut self.code)?;
            let cell = match (content, field.held()) {
                (Content::Number(value), _) => {
                    let mut refs = plan.refs.iter();
                    let slot = refs.position(|reference| reference.var.is_to(None, var));
                    let slot = slot.unwrap_or(usize::MAX);
                    self.stores.push(Store { var, value, slot }, GFP_KERNEL)?;
                    Cell::Number(var)
                }
                (content, held) => {
                    let words = match held {
                        Held::Text => text_size(field.size).div_ceil(8),
                        _ => WIDE_WORDS,
                    };
                    let cell = self.add_wide(words)?;
                    let store = WideStore {
                        cell,
                        words,
                        content,
                    };
                    self.wide_stores.push(store, GFP_KERNEL)?;
                    Cell::Wide(cell)
                }
            };
            self.cells.push(cell, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Adds a wide cell. Returns its number.
    fn add_wide(&mut self, words: usize) -> Result<usize> {
        self.wide.push(words, GFP_KERNEL)?;
        Ok(self.wide.len() - 1)
    }

    /// Compiles the actions.
    fn add_actions(&mut self, plan: &Plan, targets: &Targets, time: Operand) -> Result {
        let mut saved_words = 0;
        for var in &plan.save_vars {
            let words = match var.value.held() {
                Held::Number | Held::Stack => 1,
                Held::Text => text_size(var.value.size).div_ceil(8),
            };
            let content = content(&var.value, time, &mut self.code)?;
            self.saved.push((content, words), GFP_KERNEL)?;
            saved_words += words;
        }
        for (action, target) in plan.actions.iter().zip(&targets.0) {
            let effect = match target {
                Target::CondSnapshot(_) => Effect::Snapshot,
                Target::SynthEvent(event) => self.trace(plan, &action.slots, &**event, time)?,
                Target::Nothing => Effect::Save,
            };
            let when = match (&action.track, &action.handler) {
                (Some(track), handler) => {
                    let saved = match effect {
                        Effect::Save => saved_words,
                        _ => 0,
                    };
                    When::Tracked(Track {
                        slot: track.var_ref.slot,
                        larger: matches!(handler, Handler::OnMax { .. }),
                        cell: self.add_wide(1 + saved)?,
                    })
                }
                (None, _) => When::Always,
            };
            self.actions
                .push(CompiledAction { when, effect }, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Compiles `trace()` of `event` with the references in `slots`. A variable of this histogram has the value that
    /// this hit sets it to: another one may set it meanwhile.
    fn trace(
        &mut self,
        plan: &Plan,
        slots: &[usize],
        event: &dyn SynthEvent,
        time: Operand,
    ) -> Result<Effect> {
        let mut idx = KVec::with_capacity(slots.len(), GFP_KERNEL)?;
        let mut fields = KVec::new();
        let mut wide = KVec::new();
        for (&slot, field) in slots.iter().zip(event.fields()) {
            let var = &plan.refs[slot].var;
            let own = match var.home {
                Some(_) => None,
                None => Some(plan.own(var.index).ok_or(EINVAL)?),
            };
            match (var.held, own) {
                (Held::Number, Some(own)) if own.variable.is_none() => {
                    add_once(&mut fields, slot, || {
                        match content(own, time, &mut self.code)? {
                            Content::Number(value) => Ok(value),
                            _ => Err(EINVAL),
                        }
                    })?;
                }
                (Held::Number, _) => (),
                (_, Some(own)) => {
                    add_once(&mut wide, slot, || content(own, time, &mut self.code))?;
                }
                (_, None) => add_once(&mut wide, slot, || Ok(Content::Other(slot)))?,
            }
            let val = match (var.held, field.held) {
                (Held::Number, Held::Text) => {
                    let val = VARS_MAX + slot;
                    add_once(&mut wide, val, || Ok(Content::Pointed(slot)))?;
                    val
                }
                _ => slot,
            };
            idx.push(val as u32, GFP_KERNEL)?;
        }
        Ok(Effect::Trace { idx, fields, wide })
    }

    /// Evaluates `value` for `hit` with these values of references.
    #[inline(never)]
    pub(super) fn read(&self, value: &Value, hit: &Hit<'_>, vals: &[u64]) -> u64 {
        match *value {
            Value::Simple { ref operand, scale } => scale.apply(operand.read(hit, vals)),
            Value::Pair {
                operator,
                ref left,
                ref right,
            } => apply(operator, left.read(hit, vals), right.read(hit, vals)),
            Value::Computed { start, end } => {
                let code = self.code.get(start..end).unwrap_or_default();
                compute(code, hit, vals)
            }
        }
    }

    /// As [`Program::read`], without a call for numbers that are not scaled.
    #[inline(always)]
    pub(super) fn read_inline(&self, value: &Value, hit: &Hit<'_>, vals: &[u64]) -> u64 {
        match *value {
            Value::Simple {
                ref operand,
                scale: Scale::One,
            } => operand.read(hit, vals),
            _ => self.read(value, hit, vals),
        }
    }

    /// The wide cell of the value that the `n`th action tracks.
    pub(super) fn tracked(&self, n: usize) -> Option<usize> {
        match &self.actions.get(n)?.when {
            When::Tracked(track) => Some(track.cell),
            When::Always => None,
        }
    }

    /// Words of side data of an element.
    pub(super) fn side(&self) -> usize {
        match self.pid {
            Some(_) => OnceText::WORDS,
            None => 0,
        }
    }

    /// Whether it calls no function that may hit a static event, as those for the stack and for actions may. Clocks hit
    /// none. Probes can be placed in them, but those bound their own recursion, and are no static events.
    pub(super) fn is_leaf(&self) -> bool {
        let parts = self.parts.iter().map(|part| &part.content);
        let stores = self.wide_stores.iter().map(|store| &store.content);
        let saved = self.saved.iter().map(|(content, _)| content);
        let mut contents = Iterator::chain(parts, Iterator::chain(stores, saved));
        let mut actions = self.actions.iter();
        !contents.any(|content| matches!(content, Content::Stack))
            && actions.all(|action| matches!(action.effect, Effect::Save))
    }

    /// The parts of the map's key, in the order of the key fields.
    pub(super) fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Bytes of a hit's key without zeros at the end, as far as the record says that.
    #[inline]
    pub(super) fn key_used(&self, hit: &Hit<'_>) -> usize {
        let last = self.parts.last();
        last.map_or(0, |part| part.at + part.used(hit))
    }

    /// Writes the key of a hit to `key`, which has [`Program::key_used`] bytes, all zero.
    #[inline]
    pub(super) fn put_key(&self, key: &mut [u8], hit: &Hit<'_>) {
        for part in &self.parts {
            part.put(key, self, hit);
        }
    }
}

/// Adds what `make` makes to `list`, if nothing of this number is there.
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

/// What a field puts into the key or adds to a column. Appends to `code` if it is an expression.
fn content(field: &HistField, time: Operand, code: &mut KVec<Step>) -> Result<Content> {
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
        Function::VarRef if field.held() != Held::Number => {
            Content::Other(field.reference.as_ref().map_or(0, |var| var.slot))
        }
        Function::String => Content::Array {
            offset,
            len,
            unpadded: field.unpadded,
        },
        Function::DynString => Content::DataLoc(offset),
        Function::RelDynString => Content::RelLoc(offset),
        Function::Stack => Content::Stack,
        Function::StoredStack => Content::StoredStack(offset),
        _ => Content::Number(match operand(field, time) {
            Some(operand) => {
                let scale = field.scale();
                Value::Simple { operand, scale }
            }
            None => match pair(field, time) {
                Some(pair) => pair,
                None => {
                    let start = code.len();
                    translate(field, time, code)?;
                    let end = code.len();
                    let reads = |step: &&Step| matches!(step, Step::Read(..));
                    if code[start..end].iter().filter(reads).count() > DEPTH {
                        return Err(EINVAL);
                    }
                    Value::Computed { start, end }
                }
            },
        }),
    })
}

/// The number that a field is; `None` if it is an expression, or no number.
fn operand(field: &HistField, time: Operand) -> Option<Operand> {
    let offset = field.event_field.as_ref().map_or(0, |f| f.offset);
    Some(match field.function {
        Function::Counter => Operand::Constant(1),
        Function::Const(number) => Operand::Constant(number),
        Function::Cpu => Operand::Cpu,
        Function::Timestamp => time,
        Function::Number(type_) => Operand::Recorded(Number::new(type_, offset)),
        Function::VarRef => Operand::Reference(field.reference.as_ref()?.slot),
        _ => return None,
    })
}

/// The expression that a field is, if its operands are two numbers that are not scaled.
fn pair(field: &HistField, time: Operand) -> Option<Value> {
    let (Function::Binary(operator), [left, right]) = (field.function, &field.operands[..]) else {
        return None;
    };
    let number = |field: &HistField| operand(field, time).filter(|_| field.scale() == Scale::One);
    Some(Value::Pair {
        operator,
        left: number(left)?,
        right: number(right)?,
    })
}

/// Appends the steps that compute `field`. Fails with `ENOMEM`, and with `EINVAL` for an operand
/// that is no number.
fn translate(field: &HistField, time: Operand, code: &mut KVec<Step>) -> Result {
    for operand in &field.operands {
        translate(operand, time, code)?;
    }
    let step = match field.function {
        Function::Negative => Step::Negate,
        Function::Binary(operator) => Step::Apply(operator),
        _ => Step::Read(operand(field, time).ok_or(EINVAL)?, field.scale()),
    };
    Ok(code.push(step, GFP_KERNEL)?)
}

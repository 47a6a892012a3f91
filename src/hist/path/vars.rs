// SPDX-License-Identifier: GPL-2.0

//! Hits of triggers with one variable: see [`VarFields`].

use super::{
    var_fields::{
        Difference,
        TraceField,
        TraceFields,
        Use,
        VarFields,
        VarImport,
        VarOperand,
        VarValue,
        TRACE_WORDS, //
    },
    var_key::VarKey, //
};
use crate::{
    event::{
        Context,
        Record, //
    },
    hist::{
        program::number::{
            common_number,
            ns_to_usecs,
            recorded_number, //
        },
        spec::target::{
            SynthLeaf,
            SynthTarget,
            Target,
            Targets, //
        },
    },
    map::{
        Elt,
        FirstSlot,
        Generation,
        Loss,
        Map, //
    },
    sync::PreemptOff, //
};

/// The inputs for the numbers of a hit.
struct Numbers<'a, T> {
    record: Record<'a>,
    /// The value of the variable that was read.
    reference: u64,
    /// Reads the clock, in ns.
    clock: T,
}

impl<T: Fn() -> u64> Numbers<'_, T> {
    #[inline(always)]
    fn read(&self, operand: &VarOperand) -> u64 {
        match operand {
            VarOperand::TimeInUsecs => ns_to_usecs((self.clock)()),
            VarOperand::Reference => self.reference,
            VarOperand::Recorded(number) => recorded_number(number, self.record),
            VarOperand::Time => (self.clock)(),
            VarOperand::Constant(number) => *number,
        }
    }

    /// Computes the number. Reads the time last, when few other registers are in use.
    #[inline(always)]
    fn compute(&self, value: &VarValue) -> u64 {
        match value {
            VarValue::Usecs => ns_to_usecs((self.clock)()).wrapping_sub(self.reference),
            VarValue::Other(Difference { left, right }) => {
                let right = right.as_ref().map_or(0, |right| self.read(right));
                self.read(left).wrapping_sub(right)
            }
        }
    }
}

// Functions are called last, and rare work has functions of its own, so that hits save few
// registers.
impl VarFields {
    /// Counts a hit of a trigger that neither reads a variable nor has an action. `clock` reads
    /// [`Clock::Global`](crate::event::Clock), in ns. Any context, NMI included.
    #[inline(always)]
    pub(super) fn set<T: Fn() -> u64>(
        &self,
        map: &Map,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
    ) {
        self.count_with_reference(map, record, preempt, 0, clock);
    }

    /// Counts a hit of a trigger that reads a variable and lacks actions: see [`VarFields::set`].
    #[inline(always)]
    pub(super) fn latency<T: Fn() -> u64>(
        &self,
        map: &Map,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
    ) {
        // Each arm is a jump to another function: anything else would save registers first.
        match self.import_first_slot(record, preempt) {
            FirstSlot::Hit(Some(reference)) => {
                self.count_reference(map, record, preempt, reference, clock);
            }
            FirstSlot::Hit(None) | FirstSlot::Empty => lose_unresolved(map, preempt),
            FirstSlot::Other => self.latency_slow(map, record, preempt, clock),
        }
    }

    /// Slow path: the variable is not in the first slot.
    #[inline(never)]
    fn latency_slow<T: Fn() -> u64>(
        &self,
        map: &Map,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
    ) {
        match self.import(record, preempt) {
            Some(reference) => self.count_reference(map, record, preempt, reference, clock),
            None => lose_unresolved(map, preempt),
        }
    }

    /// Out-of-line [`VarFields::count_with_reference`].
    #[inline(never)]
    fn count_reference<T: Fn() -> u64>(
        &self,
        map: &Map,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        reference: u64,
        clock: T,
    ) {
        self.count_with_reference(map, record, preempt, reference, clock);
    }

    /// Counts a hit without an action; `reference` is the value of its variable.
    #[inline(always)]
    fn count_with_reference<T: Fn() -> u64>(
        &self,
        map: &Map,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        reference: u64,
        clock: T,
    ) {
        let numbers = Numbers {
            record,
            reference,
            clock,
        };
        self.count(map.read(preempt), &numbers, preempt);
    }

    /// Counts a hit with an action: like [`VarFields::set`]. Returns false, and has done nothing,
    /// if hits may nest in this one: the event that it emits has listeners other than a histogram.
    /// `context` is only used for its stack, if that event gets another listener just then.
    #[inline(always)]
    pub(in crate::hist) fn trace<T: Fn() -> u64>(
        &self,
        map: &Map,
        targets: &Targets,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
        context: &dyn Context,
    ) -> bool {
        let (Some(event), Some(trace)) = (targets.only_event(), &self.trace) else {
            return false;
        };
        let Some(leaf) = event.leaf(preempt) else {
            return false;
        };
        let Some(reference) = self.import(record, preempt) else {
            lose_unresolved(map, preempt);
            return true;
        };
        let numbers = Numbers {
            record,
            reference,
            clock,
        };
        let emission = Emission { event, leaf, trace };
        let generation = map.read(preempt);
        if let Some(computed) = self.count(generation, &numbers, preempt) {
            if !emission.emit(context, preempt, &numbers, computed) {
                generation.lose(preempt, Loss::Missed);
            }
        }
        true
    }

    /// Counts a hit with these inputs. Returns the number that it computes, unless the hit is
    /// dropped.
    #[inline(always)]
    fn count<T: Fn() -> u64>(
        &self,
        generation: &Generation,
        numbers: &Numbers<'_, T>,
        preempt: PreemptOff<'_>,
    ) -> Option<u64> {
        let elt = self.key.insert(generation, numbers.record, preempt)?;
        match &self.used {
            Use::Variable(var) => {
                elt.count(preempt);
                let computed = numbers.compute(&self.value);
                if !elt.set_var(*var, computed) {
                    generation.lose(preempt, Loss::Missed);
                }
                Some(computed)
            }
            Use::Columns(columns, distribution) => {
                let computed = numbers.compute(&self.value);
                if let Some(distribution) = distribution {
                    distribution.count(generation, preempt, elt.number(), computed);
                }
                elt.update_inline(preempt, &[computed], |&value| (value, *columns));
                Some(computed)
            }
            Use::None => {
                elt.count(preempt);
                Some(0)
            }
        }
    }
}

/// Counts a hit whose variable is not set.
#[inline(never)]
fn lose_unresolved(map: &Map, preempt: PreemptOff<'_>) {
    map.read(preempt).lose(preempt, Loss::Unresolved);
}

/// A synthetic event to emit, and the histogram that is its only listener.
#[derive(Clone, Copy)]
struct Emission<'a> {
    event: &'a dyn SynthTarget,
    leaf: &'a dyn SynthLeaf,
    trace: &'a TraceFields,
}

impl Emission<'_> {
    /// Emits the event. Returns false if it is lost.
    #[inline(always)]
    fn emit<T: Fn() -> u64>(
        self,
        context: &dyn Context,
        preempt: PreemptOff<'_>,
        numbers: &Numbers<'_, T>,
        computed: u64,
    ) -> bool {
        // A leaf reads nothing of the head but the process id, which is the same as in this hit.
        let mut words = [numbers.record.first_word(), 0, 0, 0, 0, 0, 0];
        let [_, fields @ ..] = &mut words;
        for (word, field) in fields.iter_mut().zip(self.trace) {
            *word = match field {
                TraceField::Computed => computed,
                TraceField::Operand(operand) => numbers.read(operand),
            };
        }
        self.leaf.count(preempt, &words) || self.emit_slow(context, preempt, &words)
    }

    /// Emits the event in the ordinary way, as it has other listeners by now. Hits may nest in it,
    /// although this one has not claimed its context; the depth is limited as for all synthetic
    /// events.
    #[cold]
    #[inline(never)]
    fn emit_slow(
        self,
        context: &dyn Context,
        preempt: PreemptOff<'_>,
        words: &[u64; TRACE_WORDS],
    ) -> bool {
        let [_, fields @ ..] = words;
        let idx = [0, 1, 2, 3, 4, 5];
        let idx = idx.get(..self.trace.len()).unwrap_or_default();
        // All fields are numbers, so `write` is never called.
        self.event
            .emit(context, preempt, fields, idx, &mut |_, _| false)
    }
}

impl VarFields {
    /// Reads the variable; 0 if the program reads none. `None`: it is not set.
    #[inline(always)]
    fn import(&self, record: Record<'_>, preempt: PreemptOff<'_>) -> Option<u64> {
        match &self.import {
            Some(import) => {
                let generation = import.home.map.read(preempt);
                import.read(import.on.lookup(generation, record, preempt)?)
            }
            None => Some(0),
        }
    }

    /// [`VarFields::import`] for an element in the first slot of its path, whose key is one number.
    #[inline(always)]
    fn import_first_slot(
        &self,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> FirstSlot<Option<u64>> {
        let Some(import) = &self.import else {
            return FirstSlot::Other;
        };
        let VarKey::Number(on) = &import.on else {
            return FirstSlot::Other;
        };
        let Some(key) = common_number(on, record) else {
            return FirstSlot::Other;
        };
        match import.home.map.read(preempt).lookup_first_slot(key) {
            FirstSlot::Hit(elt) => FirstSlot::Hit(import.read(elt)),
            FirstSlot::Empty => FirstSlot::Empty,
            FirstSlot::Other => FirstSlot::Other,
        }
    }
}

impl VarImport {
    #[inline(always)]
    fn read(&self, elt: Elt<'_>) -> Option<u64> {
        match self.once {
            true => elt.take_var(self.var),
            false => elt.var(self.var),
        }
    }
}

impl Targets {
    /// The synthetic event, if it is the only action.
    #[inline(always)]
    fn only_event(&self) -> Option<&dyn SynthTarget> {
        match &self.0[..] {
            [Target::Trace(event)] => Some(&**event),
            _ => None,
        }
    }
}

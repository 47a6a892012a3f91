// SPDX-License-Identifier: GPL-2.0

//! The fast path of triggers with variables: see [`VarFields`].

use crate::{
    event::{
        Context,
        Record, //
    },
    hist::{
        program::{
            number::{
                common_number,
                ns_to_usecs,
                recorded_number, //
            },
            vars::{
                Difference,
                TraceField,
                TraceFields,
                Use,
                VarFields,
                VarOperand,
                VarValue,
                TRACE_WORDS, //
            },
            Program,
            VarImport, //
        },
        spec::target::{
            SynthLeaf,
            SynthTarget,
            Target,
            Targets, //
        },
        Histogram, //
    },
    map::{
        Elt,
        FirstSlot,
        Loss, //
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
impl Histogram {
    /// Counts a hit of a trigger that neither reads a variable nor has an action. `clock` reads
    /// [`Clock::Global`](crate::event::Clock), in ns. For a program of [`VarPath::Set`] only. Any
    /// context, NMI included.
    #[inline(always)]
    pub fn hit_set<T: Fn() -> u64>(
        &self,
        program: &Program,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
    ) {
        self.count_with_reference(program, record, preempt, 0, clock);
    }

    /// Counts a hit of a trigger that reads a variable and lacks actions: like
    /// [`Histogram::hit_set`], for [`VarPath::Latency`].
    #[inline(always)]
    pub fn hit_latency<T: Fn() -> u64>(
        &self,
        program: &Program,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
    ) {
        let Some(fields) = &program.vars else {
            return;
        };
        // Each arm is a jump to another function: anything else would save registers first.
        match fields.import_first_slot(record, preempt) {
            FirstSlot::Hit(Some(reference)) => {
                self.hit_with_reference(program, record, preempt, reference, clock);
            }
            FirstSlot::Hit(None) | FirstSlot::Empty => self.lose_unresolved(preempt),
            FirstSlot::Other => self.hit_latency_slow(program, record, preempt, clock),
        }
    }

    /// Slow path: the variable is not in the first slot.
    #[inline(never)]
    fn hit_latency_slow<T: Fn() -> u64>(
        &self,
        program: &Program,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
    ) {
        let fields = program.vars.as_ref();
        match fields.and_then(|fields| fields.import(record, preempt)) {
            Some(reference) => self.hit_with_reference(program, record, preempt, reference, clock),
            None => self.lose_unresolved(preempt),
        }
    }

    /// Counts a hit whose variable is not set.
    #[inline(never)]
    fn lose_unresolved(&self, preempt: PreemptOff<'_>) {
        self.map.lose(preempt, Loss::Unresolved);
    }

    /// Out-of-line [`Histogram::count_with_reference`].
    #[inline(never)]
    fn hit_with_reference<T: Fn() -> u64>(
        &self,
        program: &Program,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        reference: u64,
        clock: T,
    ) {
        self.count_with_reference(program, record, preempt, reference, clock);
    }

    /// Counts a hit without an action; `reference` is the value of its variable.
    #[inline(always)]
    fn count_with_reference<T: Fn() -> u64>(
        &self,
        program: &Program,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        reference: u64,
        clock: T,
    ) {
        if let Some(fields) = &program.vars {
            let numbers = Numbers {
                record,
                reference,
                clock,
            };
            self.count_var(program, fields, &numbers, preempt);
        }
    }

    /// Counts a hit with an action: like [`Histogram::hit_set`], for [`VarPath::Trace`]. Returns
    /// false, and has done nothing, if hits may nest in this one: the emitted event has listeners
    /// other than a histogram. `context` is only used for its stack, if that event gets another
    /// listener just then.
    #[inline(always)]
    pub fn hit_trace<T: Fn() -> u64>(
        &self,
        program: &Program,
        targets: &Targets,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: T,
        context: &dyn Context,
    ) -> bool {
        let (Some(fields), Some(event)) = (&program.vars, targets.only_event()) else {
            return false;
        };
        let (Some(trace), Some(leaf)) = (&fields.trace, event.leaf(preempt)) else {
            return false;
        };
        let Some(reference) = fields.import(record, preempt) else {
            self.lose_unresolved(preempt);
            return true;
        };
        let numbers = Numbers {
            record,
            reference,
            clock,
        };
        let emission = Emission { event, leaf, trace };
        if let Some(computed) = self.count_var(program, fields, &numbers, preempt) {
            if !emission.emit(context, preempt, &numbers, computed) {
                self.map.lose(preempt, Loss::Missed);
            }
        }
        true
    }

    /// Counts a hit with these inputs. Returns the number that it computes, unless the hit is
    /// dropped.
    #[inline(always)]
    fn count_var<T: Fn() -> u64>(
        &self,
        program: &Program,
        fields: &VarFields,
        numbers: &Numbers<'_, T>,
        preempt: PreemptOff<'_>,
    ) -> Option<u64> {
        let key = recorded_number(&fields.key, numbers.record);
        let elt = match self.map.lookup_word_first_slot(preempt, key) {
            Some(elt) => elt,
            None => self.insert_slow(preempt, key)?,
        };
        match fields.used {
            Use::Variable(var) => {
                elt.count(preempt);
                let computed = numbers.compute(&fields.value);
                if !elt.set_var(var, computed) {
                    self.map.lose(preempt, Loss::Missed);
                }
                Some(computed)
            }
            Use::Columns => {
                let computed = numbers.compute(&fields.value);
                self.count_computed(program, preempt, elt, computed);
                Some(computed)
            }
            Use::None => {
                elt.count(preempt);
                Some(0)
            }
        }
    }

    /// Slow path: the element is new, or not in the first slot of its path.
    #[inline(never)]
    fn insert_slow<'a>(&'a self, preempt: PreemptOff<'a>, key: u64) -> Option<Elt<'a>> {
        self.map.insert_word(preempt, key)
    }

    /// Updates the columns of the element with the number that the hit computed.
    #[inline(always)]
    fn count_computed(
        &self,
        program: &Program,
        preempt: PreemptOff<'_>,
        elt: Elt<'_>,
        computed: u64,
    ) {
        let Some(value) = program.values.first() else {
            return;
        };
        if let Some(distribution) = &value.distribution {
            self.count_in_bucket(distribution, preempt, elt.number(), computed);
        }
        elt.update_inline(preempt, computed, value.columns);
    }
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
                let key = recorded_number(&import.on, record);
                import.read(import.home.map.lookup_word(preempt, key)?)
            }
            None => Some(0),
        }
    }

    /// [`VarFields::import`] for an element in the first slot of its path.
    #[inline(always)]
    fn import_first_slot(
        &self,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> FirstSlot<Option<u64>> {
        let Some(import) = &self.import else {
            return FirstSlot::Other;
        };
        let Some(key) = common_number(&import.on, record) else {
            return FirstSlot::Other;
        };
        match import.home.map.lookup_first_slot(preempt, key) {
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

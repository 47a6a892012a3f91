// SPDX-License-Identifier: GPL-2.0

//! Variables of a hit.
//!
//! `import()` reads the variables of other histograms before the element is looked up, each from
//! the element that has the key of this hit there, or with `on()` the key of these fields. An
//! operand of an expression is read once: that unsets the variable. If a variable is not set, the
//! hit counts as unresolved, and nothing else is done.
//!
//! `store()` sets the histogram's own variables after the columns were updated. Values are in an
//! array on the stack, by the slots of references, from which expressions and actions read them
//! (`var_ref_vals`). So actions use the values that this hit has set, and not the values in the
//! element, which another CPU may have replaced since. For a string or a stack, the array has the
//! number of its element, and it is copied when it is used.

use super::put_wide;
use crate::{
    event::Hit,
    hist::{
        program::{
            Cell,
            Import,
            Program,
            VarStore,
            WideStore, //
        },
        Histogram, //
    },
    limits::WIDE_WORDS,
    map::{
        Elt,
        Generation,
        Loss,
        Read,
        WideCell, //
    },
    sync::PreemptOff,
};

impl Histogram {
    /// Reads the variables of other histograms to `vals`, by the slots of their references:
    /// numbers, or the number of the element that holds a string or stack (`resolve_var_refs()`).
    /// Returns false if one is not set, and counts that. Read-once variables that were read by then
    /// stay consumed, as in C.
    #[inline(always)]
    pub(super) fn import<'a>(
        &self,
        program: &'a Program,
        hit: &Hit<'a>,
        vals: &mut [u64],
        lookup: impl Fn(&'a Generation) -> Option<Elt<'a>>,
    ) -> bool {
        // Most programs refer to one variable, so avoid the loop: see `store()`.
        let Some((first, others)) = program.imports.split_first() else {
            return true;
        };
        let elt = lookup(first.home.map.read(hit.preempt()));
        let mut found = first.read(elt, vals).is_some();
        if found && !others.is_empty() {
            found = read_others(others, hit.preempt(), elt, vals, lookup);
        }
        if !found {
            self.lose(hit, Loss::Unresolved);
        }
        found
    }

    /// Sets the variables of the element. Numbers that actions refer to are stored in `vals`, too.
    #[inline(always)]
    pub(super) fn store(&self, program: &Program, hit: &Hit<'_>, vals: &mut [u64], elt: Elt<'_>) {
        // Most programs set one variable, for which preparing a loop costs too much.
        if let [first, others @ ..] = &program.stores[..] {
            self.store_number(program, hit, vals, elt, first);
            if !others.is_empty() {
                self.store_numbers(program, hit, vals, elt, others);
            }
        }
        if !program.wide_stores.is_empty() {
            self.store_wide(program, hit, vals, elt);
        }
    }

    #[inline(never)]
    fn store_numbers(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        stores: &[VarStore],
    ) {
        for store in stores {
            self.store_number(program, hit, vals, elt, store);
        }
    }

    #[inline(always)]
    fn store_number(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        store: &VarStore,
    ) {
        let value = program.read_inline(&store.value, hit, vals);
        if let Some(place) = vals.get_mut(store.slot) {
            *place = value;
        }
        if !elt.set_var(store.var, value) {
            self.lose(hit, Loss::Missed);
        }
    }

    #[inline(never)]
    fn store_wide(&self, program: &Program, hit: &Hit<'_>, vals: &[u64], elt: Elt<'_>) {
        let mut words = [0; WIDE_WORDS];
        for store in &program.wide_stores {
            if store.words > WIDE_WORDS {
                self.store_long(program, hit, vals, elt, store);
                continue;
            }
            let done = put_wide(store.content, program, hit, vals, store.words, &mut words)
                && elt
                    .wide(store.cell)
                    .is_some_and(|cell| cell.write(words.iter().copied()));
            if !done {
                self.lose(hit, Loss::Missed);
            }
        }
    }

    /// Sets a variable that is a long stack.
    #[inline(never)]
    fn store_long(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &[u64],
        elt: Elt<'_>,
        store: &WideStore,
    ) {
        let write = |cell: WideCell<'_>| {
            let mut buffer = hit.context().long_buffer(hit.preempt())?;
            let done = store.content.read_long(program, hit, vals, &mut buffer)
                && cell.write(buffer.words().iter().copied());
            done.then_some(())
        };
        if elt.wide(store.cell).and_then(write).is_none() {
            self.lose(hit, Loss::Missed);
        }
    }
}

/// Reads the variables of `imports`, which follow one that was read from `elt`.
#[inline(never)]
fn read_others<'a>(
    imports: &'a [Import],
    preempt: PreemptOff<'a>,
    mut elt: Option<Elt<'a>>,
    vals: &mut [u64],
    lookup: impl Fn(&'a Generation) -> Option<Elt<'a>>,
) -> bool {
    imports.iter().all(|import| {
        if !import.again {
            elt = lookup(import.home.map.read(preempt));
        }
        import.read(elt, vals).is_some()
    })
}

impl Import {
    /// Reads the variable of `elt` to its slot in `vals`. `None`: it is not set.
    #[inline(always)]
    fn read(&self, elt: Option<Elt<'_>>, vals: &mut [u64]) -> Option<()> {
        let elt = elt?;
        let value = match self.cell {
            Cell::Once(number) => elt.take_var(number)?,
            Cell::Number(number) => elt.var(number)?,
            Cell::Wide(number) => match elt.wide(number)?.read(&mut []) {
                Read::Unset => return None,
                Read::Done | Read::Busy => elt.number().into(),
            },
        };
        *vals.get_mut(self.slot)? = value;
        Some(())
    }
}

// SPDX-License-Identifier: GPL-2.0

//! A variable of an element, compared with a plain one, and interrupted at every point. `loom.rs`
//! and `crowd.rs` test several CPUs at once.

use std::cell::Cell;
use std::rc::Rc;

use kernel::interrupt;
use proptest::prelude::*;
use rhist::map::VarCell;
use rhist::map::VarMask;

const MASK: u64 = 0x5bd1_e995_9d1b_54a5;

fn mask() -> VarMask {
    VarMask::new(MASK)
}

#[test]
fn is_unset_at_first() {
    assert_eq!(VarCell::new().get(mask()), None);
    assert_eq!(VarCell::new().take(mask()), None);
}

#[test]
fn holds_all_but_one_value() {
    for value in [0, 1, 1 << 63, u64::MAX, !MASK, MASK ^ 1, MASK ^ 1 << 63] {
        let cell = VarCell::new();
        assert!(cell.set(mask(), value));
        assert_eq!(cell.get(mask()), Some(value));
        assert_eq!(cell.get(mask()), Some(value), "a get does not unset it");
        assert_eq!(cell.take(mask()), Some(value));
        assert_eq!(cell.get(mask()), None);
    }
}

/// A value that it cannot hold is reported, and unsets the variable.
#[test]
fn reports_the_value_that_it_cannot_hold() {
    let cell = VarCell::new();
    assert!(cell.set(mask(), 7));
    assert!(!cell.set(mask(), MASK));
    assert_eq!(cell.get(mask()), None);
    assert_eq!(cell.take(mask()), None);
    assert!(cell.set(VarMask::new(!MASK), MASK));
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Set(u64),
    Get,
    Take,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        any::<u64>().prop_map(Operation::Set),
        (0u64..2).prop_map(Operation::Set),
        Just(Operation::Set(MASK)),
        Just(Operation::Get),
        Just(Operation::Take),
    ]
}

/// Runs one operation on the cell. Returns the value of a read.
fn run(cell: &VarCell, operation: Operation) -> Option<u64> {
    match operation {
        Operation::Set(value) => {
            assert_eq!(cell.set(mask(), value), value != MASK);
            None
        }
        Operation::Get => cell.get(mask()),
        Operation::Take => cell.take(mask()),
    }
}

/// Runs the same operation on a plain option, as the model.
fn run_plain(plain: &mut Option<u64>, operation: Operation) -> Option<u64> {
    match operation {
        Operation::Set(value) => {
            *plain = Some(value).filter(|&value| value != MASK);
            None
        }
        Operation::Get => *plain,
        Operation::Take => plain.take(),
    }
}

proptest! {
    #[test]
    fn is_a_plain_one_in_one_context(operations in prop::collection::vec(operation(), 0..20)) {
        let (cell, mut plain) = (VarCell::new(), None);
        for operation in operations {
            prop_assert_eq!(run(&cell, operation), run_plain(&mut plain, operation));
        }
    }
}

/// Runs `first` after `before`, interrupted by `second` at its `n`-th access, and asserts that the
/// result is the same as if one had come after the other. Returns whether the interrupt came.
fn interrupted(n: usize, before: Operation, first: Operation, second: Operation) -> bool {
    let cell = Rc::new(VarCell::new());
    run(&cell, before);
    let read = Rc::new(Cell::new(None));
    let handler = {
        let (cell, read) = (cell.clone(), read.clone());
        move || read.set(run(&cell, second))
    };
    let (result, came) = interrupt::at(n, handler, || run(&cell, first));
    let outcome = (result, read.get(), cell.get(mask()));
    let orders = [true, false].map(|interrupt_first| {
        let mut plain = None;
        run_plain(&mut plain, before);
        let early = interrupt_first.then(|| run_plain(&mut plain, second));
        let result = run_plain(&mut plain, first);
        let read = early.unwrap_or_else(|| run_plain(&mut plain, second));
        (result, read, plain)
    });
    assert!(
        !came || orders.contains(&outcome),
        "{before:?}, {first:?} interrupted by {second:?} at {n}: {outcome:?}"
    );
    came
}

#[test]
fn operations_interrupted_at_every_access() {
    let all = [
        Operation::Set(1),
        Operation::Set(2),
        Operation::Get,
        Operation::Take,
    ];
    // With a variable that is unset, or set.
    for before in [Operation::Get, Operation::Set(0)] {
        for first in all {
            for second in all {
                let accesses = (0..)
                    .take_while(|&n| interrupted(n, before, first, second))
                    .count();
                // Nothing is tried again.
                let most = if matches!(first, Operation::Take) {
                    2
                } else {
                    1
                };
                assert!(accesses >= 1 && accesses <= most, "{first:?}: {accesses}");
            }
        }
    }
}

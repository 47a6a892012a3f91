// SPDX-License-Identifier: GPL-2.0

//! A wide cell of an element, compared with a plain value, and interrupted at every point.
//! `loom.rs` and `crowd.rs` test several CPUs at once.

use std::cell::Cell;
use std::cell::RefCell;
use std::rc::Rc;

use kernel::interrupt;
use kernel::sync::atomic::Atomic;
use proptest::prelude::*;
use rhist::map::text_to_words;
use rhist::map::words_to_text;
use rhist::map::Read;
use rhist::map::Replace;
use rhist::map::WideCell;

/// Words of a value.
const WORDS: usize = 3;

type Value = [u64; WORDS];

/// A cell with memory of its own.
struct Owned(Vec<Atomic<u64>>);

impl Owned {
    fn new() -> Self {
        let size = WideCell::size(WORDS).unwrap();
        Self((0..size).map(|_| Atomic::new(0)).collect())
    }

    fn cell(&self) -> WideCell<'_> {
        WideCell::new(&self.0).unwrap()
    }

    fn get(&self) -> Option<Value> {
        let mut value = [0; WORDS];
        value_of(self.cell().read(&mut value), value)
    }
}

/// Returns the value of a read, which was not busy.
fn value_of(read: Read, value: Value) -> Option<Value> {
    assert_ne!(read, Read::Busy);
    (read == Read::Done).then_some(value)
}

/// A value whose words all depend on `first`.
fn value(first: u64) -> Value {
    [first, !first, first.rotate_left(7)]
}

/// A reader gives up if the value is replaced again and again.
#[test]
fn retried() {
    let mut reads = 0;
    let mut after = |n: usize, then: Read| {
        reads = 0;
        Read::retry(|| {
            reads += 1;
            if reads > n {
                then
            } else {
                Read::Busy
            }
        })
    };
    assert_eq!(after(0, Read::Done), Some(true));
    assert_eq!(after(5, Read::Unset), Some(false));
    assert_eq!(after(usize::MAX, Read::Done), None);
    assert_eq!(reads, Read::RETRIES);
}

#[test]
fn holds_all_values() {
    let owned = Owned::new();
    assert_eq!(owned.get(), None);
    for value in [[0; WORDS], [u64::MAX; WORDS], [0, 0, 1], [1, 0, 0]] {
        assert!(owned.cell().write(value));
        assert_eq!(owned.get(), Some(value));
        assert_eq!(owned.get(), Some(value), "a read does not unset it");
        let mut taken = [7; WORDS];
        assert_eq!(owned.cell().take(&mut taken), Read::Done);
        assert_eq!((taken, owned.get()), (value, None));
        assert_eq!(owned.cell().take(&mut taken), Read::Unset);
        assert_eq!(taken, value, "nothing is copied");
    }
}

#[test]
fn words_that_lack_are_zero() {
    let owned = Owned::new();
    for _ in 0..4 {
        assert!(owned.cell().write([!0; 9]));
        assert_eq!(owned.get(), Some([!0; WORDS]));
    }
    for n in 0..4 {
        assert!(owned.cell().write((1..3).take(n)));
        let expected = [[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 0]][n];
        assert_eq!(owned.get(), Some(expected));
        let mut few = [9; 2];
        assert_eq!(owned.cell().read(&mut few), Read::Done);
        assert_eq!(few, expected[..2]);
        let mut many = [9; 4];
        assert_eq!(owned.cell().read(&mut many), Read::Done);
        assert_eq!((&many[..3], many[3]), (&expected[..], 9));
    }
}

/// The decision gets the first word of the value, and a value that is not needed is not computed.
#[test]
fn is_replaced_if_so_decided() {
    let owned = Owned::new();
    let asked = Cell::new(0);
    let replace = |decision| {
        let seen = Cell::new(None);
        let words = std::iter::repeat_with(|| {
            asked.set(asked.get() + 1);
            asked.get()
        });
        let decide = |first| {
            seen.set(Some(first));
            decision
        };
        (owned.cell().replace_if(decide, words), seen.get().unwrap())
    };
    assert_eq!(replace(false), (Replace::Kept, None));
    assert_eq!((owned.get(), asked.get()), (None, 0));
    assert_eq!(replace(true), (Replace::Done, None));
    assert_eq!(owned.get(), Some([1, 2, 3]));
    assert_eq!(replace(false), (Replace::Kept, Some(1)));
    asked.set(7);
    assert_eq!(replace(true), (Replace::Done, Some(1)));
    assert_eq!(owned.get(), Some([8, 9, 10]));
}

/// A writer gives up after some tries, and the values written in between stay.
#[test]
fn gives_up() {
    for (decision, writes) in [(true, 1), (false, 3)] {
        let owned = Owned::new();
        let calls = Cell::new(0);
        let decide = |_| {
            for n in 0..writes {
                calls.set(calls.get() + 1);
                assert!(owned.cell().write(value(calls.get())), "{n}");
            }
            decision
        };
        assert!(owned.cell().write(value(100)));
        let result = owned.cell().replace_if(decide, value(200));
        assert_eq!(result, Replace::Lost);
        assert_eq!(calls.get(), 4 * writes);
        assert_eq!(owned.get(), Some(value(4 * writes)));
        assert_eq!(owned.cell().replace_if(|_| true, value(5)), Replace::Done);
        assert_eq!(owned.get(), Some(value(5)));
    }
}

#[test]
fn is_too_large() {
    for words in [usize::MAX, usize::MAX - 1, usize::MAX / 3] {
        assert_eq!(WideCell::size(words), None);
    }
    assert!(WideCell::new(&[]).is_none());
    // Without a buffer, nothing can be written.
    let state = [Atomic::new(0)];
    let cell = WideCell::new(&state).unwrap();
    assert!(!cell.write([1]));
    assert_eq!(cell.replace_if(|_| true, [1]), Replace::Lost);
    assert_eq!(cell.read(&mut [0]), Read::Unset);
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(u64),
    Read,
    Take,
    /// Replaces it by a greater value.
    Max(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        any::<u64>().prop_map(Operation::Write),
        Just(Operation::Read),
        Just(Operation::Take),
        (0u64..9).prop_map(Operation::Max),
        any::<u64>().prop_map(Operation::Max),
    ]
}

/// Runs one operation on the cell. Returns the value of a read.
fn run(owned: &Owned, operation: Operation) -> Option<Value> {
    let cell = owned.cell();
    let mut read = [0; WORDS];
    match operation {
        Operation::Write(first) => {
            assert!(cell.write(value(first)));
            None
        }
        Operation::Read => value_of(cell.read(&mut read), read),
        Operation::Take => value_of(cell.take(&mut read), read),
        Operation::Max(first) => {
            let greater = |old: Option<u64>| old.is_none_or(|old| old < first);
            let done = cell.replace_if(greater, value(first));
            assert_ne!(done, Replace::Lost);
            (done == Replace::Done).then_some(value(first))
        }
    }
}

/// Runs the same operation on a plain option, as the model.
fn run_plain(plain: &mut Option<Value>, operation: Operation) -> Option<Value> {
    match operation {
        Operation::Write(first) => {
            *plain = Some(value(first));
            None
        }
        Operation::Read => *plain,
        Operation::Take => plain.take(),
        Operation::Max(first) => {
            let less = plain.is_none_or(|[old, ..]| old < first);
            less.then(|| *plain.insert(value(first)))
        }
    }
}

proptest! {
    #[test]
    fn is_a_plain_one_in_one_context(operations in prop::collection::vec(operation(), 0..20)) {
        let (owned, mut plain) = (Owned::new(), None);
        for operation in operations {
            prop_assert_eq!(run(&owned, operation), run_plain(&mut plain, operation));
        }
    }

    #[test]
    fn text_comes_back(text in prop::collection::vec(1u8.., 0..40), words in 0usize..5, room in 0usize..40) {
        let stored: Vec<u64> = text_to_words(&text, words).collect();
        prop_assert_eq!(stored.len(), words);
        let mut to = vec![0xff; room];
        let len = text.len().min(words * 8).min(room.saturating_sub(1));
        prop_assert_eq!(words_to_text(&stored, &mut to), &text[..len]);
        prop_assert!(to.is_empty() || to[len] == 0);
    }
}

/// Runs `first` after `before`, interrupted by `second` at its `n`-th access, and asserts that the
/// result is the same as if one had come after the other, and that the cell works as before.
/// Returns whether the interrupt came.
fn interrupted(n: usize, before: &[Operation], first: Operation, second: Operation) -> bool {
    let owned = Rc::new(Owned::new());
    let start = |plain: &mut Option<Value>| {
        for &operation in before {
            run_plain(plain, operation);
        }
    };
    for &operation in before {
        run(&owned, operation);
    }
    let read = Rc::new(Cell::new(None));
    let handler = {
        let (owned, read) = (owned.clone(), read.clone());
        move || read.set(run(&owned, second))
    };
    let (result, came) = interrupt::at(n, handler, || run(&owned, first));
    let outcome = (result, read.get(), owned.get());
    let orders = [true, false].map(|interrupt_first| {
        let mut plain = None;
        start(&mut plain);
        let early = interrupt_first.then(|| run_plain(&mut plain, second));
        let result = run_plain(&mut plain, first);
        let read = early.unwrap_or_else(|| run_plain(&mut plain, second));
        (result, read, plain)
    });
    assert!(
        !came || orders.contains(&outcome),
        "{before:?}, {first:?} interrupted by {second:?} at {n}: {outcome:?}"
    );
    assert_all_free(&owned);
    came
}

/// Asserts that no buffer is busy: two contexts can write, one interrupting the other.
fn assert_all_free(owned: &Rc<Owned>) {
    let accesses = (0..).take_while(|&n| {
        let handler = {
            let owned = owned.clone();
            move || assert!(owned.cell().write(value(8)))
        };
        let (written, came) = interrupt::at(n, handler, || owned.cell().write(value(9)));
        assert!(written);
        came
    });
    assert!(accesses.count() > WORDS + 4);
}

#[test]
fn operations_interrupted_at_every_access() {
    let all = [
        Operation::Write(1),
        Operation::Write(2),
        Operation::Read,
        Operation::Take,
        Operation::Max(3),
        Operation::Max(4),
        Operation::Max(0),
    ];
    let write = Operation::Write;
    // For a cell that is unset, or with each buffer as the current one.
    let befores = [
        &[][..],
        &[write(0)],
        &[write(5), write(2)],
        &[write(5), write(5), Operation::Take, write(2)],
        &[write(2), Operation::Take],
    ];
    for before in befores {
        for first in all {
            for second in all {
                let accesses = (0..)
                    .take_while(|&n| interrupted(n, before, first, second))
                    .count();
                // A claim takes at most 9 accesses, and is repeated at most once.
                assert!(
                    (1..=9 + WORDS + 8).contains(&accesses),
                    "{first:?}: {accesses}"
                );
            }
        }
    }
}

/// Writes `0`, interrupted at access `points[0]` by a write of 1, and so on. Notes in `results`
/// whether each write was accepted, and the check of the last read, which interrupts all of them.
/// Returns whether all interrupts happened.
fn nest(owned: &Rc<Owned>, level: u64, points: &[usize], results: &Rc<RefCell<Vec<bool>>>) {
    let Some((&point, points)) = points.split_first() else {
        // The value from before, or one of an interrupted write that was published already.
        let read = owned.get().unwrap();
        assert!(read == value(100) || (0..level).any(|n| read == value(n)));
        results.borrow_mut().push(true);
        return;
    };
    let handler = {
        let (owned, points, results) = (owned.clone(), points.to_vec(), results.clone());
        move || nest(&owned, level + 1, &points, &results)
    };
    let written = interrupt::at(point, handler, || owned.cell().write(value(level))).0;
    results.borrow_mut().push(written);
}

/// Writers interrupt each other. At all points, only the innermost of three may find no buffer;
/// values are whole, and a reader sees one.
#[test]
fn writers_interrupted_in_interrupts() {
    let most = 9 + WORDS + 2;
    let (mut cases, mut losses) = (0, 0);
    for points in (0..most.pow(3)).map(|n| [n % most, n / most % most, n / most / most]) {
        let owned = Rc::new(Owned::new());
        assert!(owned.cell().write(value(100)));
        let results = Rc::default();
        nest(&owned, 0, &points, &results);
        // The innermost comes first.
        let results = results.borrow();
        let [read, written @ ..] = &results[..] else {
            continue;
        };
        if written.len() < 3 {
            continue;
        }
        assert!(read);
        cases += 1;
        losses += usize::from(!written[0]);
        assert!(written[1] && written[2], "{points:?} {written:?}");
        let last = owned.get().unwrap();
        assert!((0..3).any(|n| last == value(n)), "{points:?} {last:?}");
        assert_all_free(&owned);
    }
    assert!(
        cases > 300 && losses > 0 && losses < cases / 2,
        "{cases} {losses}"
    );
}

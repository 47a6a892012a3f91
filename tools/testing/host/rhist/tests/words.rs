// SPDX-License-Identifier: GPL-2.0

//! Strings and stacks of a hit, in uninitialized memory.

use std::mem::MaybeUninit;

use proptest::prelude::*;
use rhist::cpu::Cpu;
use rhist::event::LongBuffers;
use rhist::event::Stack;
use rhist::event::Words;
use rhist::limits::STACK_DEPTH;
use rhist::limits::WIDE_WORDS;

/// Writes `entries` into the places, as a walk would do.
fn filled(places: &mut [MaybeUninit<u64>], entries: &[u64]) -> Option<usize> {
    let places = places.get_mut(..entries.len())?;
    for (place, &entry) in places.iter_mut().zip(entries) {
        place.write(entry);
    }
    Some(entries.len())
}

proptest! {
    #[test]
    fn words_are_the_text_with_zeros_behind_it(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..3)) {
        let mut words = Words::<WIDE_WORDS>::new();
        for text in texts {
            words.set(&text);
            let mut expected: Vec<u64> = text
                .chunks(8)
                .map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_ne_bytes(word)
                })
                .take(WIDE_WORDS)
                .collect();
            if expected.is_empty() {
                expected.push(0);
            }
            prop_assert_eq!(words.as_slice(), &expected[..]);
        }
    }

    #[test]
    fn a_stack_has_what_was_filled_but_for_what_is_left_out(
        entries in prop::collection::vec(any::<u64>(), 0..60),
        most in 0..70usize,
        left_out in 0..70usize,
    ) {
        let mut stack = Stack::new();
        prop_assert!(stack.entries().is_empty());
        let done = stack.fill(most, |places| {
            let len = filled(places, &entries)?;
            // SAFETY: `filled` has written the first `len` places.
            Some(unsafe { &mut *(std::ptr::from_mut(&mut places[..len]) as *mut [u64]) })
        });
        let fits = most <= Stack::BEFORE + STACK_DEPTH && entries.len() <= most;
        let done = done.map(<[u64]>::to_vec);
        prop_assert_eq!(done.is_some(), fits);
        prop_assert_eq!(done.unwrap_or_default(), if fits { entries.clone() } else { Vec::new() });
        let expected = if fits { &entries[..] } else { &[] };
        prop_assert_eq!(stack.entries(), &expected[..expected.len().min(STACK_DEPTH)]);
        stack.begin_at(left_out);
        let rest = expected.get(left_out..).unwrap_or_default();
        prop_assert_eq!(stack.entries(), &rest[..rest.len().min(STACK_DEPTH)]);
    }

    #[test]
    fn a_stack_takes_as_many_as_it_has_places_for(entries in prop::collection::vec(any::<u64>(), 0..60)) {
        let mut stack = Stack::new();
        stack.extend(entries.iter().copied());
        prop_assert_eq!(stack.entries(), &entries[..entries.len().min(STACK_DEPTH)]);
    }
}

/// A CPU has four buffers, of 128 words. One that is dropped is free, and another one is empty.
#[test]
fn long_buffers() {
    let buffers = LongBuffers::new(2).unwrap();
    let (cpu, other) = (Cpu::enter(1), Cpu::enter(0));
    for _ in 0..2 {
        let mut taken: Vec<_> = std::iter::from_fn(|| buffers.take(cpu.preempt())).collect();
        assert_eq!(taken.len(), 4);
        for (buffer, first) in taken.iter_mut().zip(1..) {
            assert_eq!(buffer.words(), []);
            buffer.push(first);
            buffer.append(|tail| (0..200).for_each(|word| tail.push(word)));
            buffer.push(0);
        }
        for (buffer, first) in taken.iter_mut().zip(1..) {
            let expected: Vec<u64> = [first].into_iter().chain(0..127).collect();
            assert_eq!(buffer.words(), expected);
            buffer.words()[0] = 7;
            assert_eq!(buffer.words()[..2], [7, 0]);
        }
        assert_eq!(buffers.take(other.preempt()).unwrap().words(), []);
        taken.remove(2);
        assert_eq!(buffers.take(cpu.preempt()).unwrap().words(), []);
    }
    assert!(LongBuffers::new(0).unwrap().take(cpu.preempt()).is_none());
}

#[test]
fn a_stack_is_not_filled_slow() {
    let mut stack = Stack::new();
    assert!(stack
        .fill(4, |_| Some(Box::leak(Box::new([1, 2]))))
        .is_none());
    assert!(stack.fill(4, |_| None).is_none());
    assert!(stack
        .fill(usize::MAX, |_| panic!("there are no such places"))
        .is_none());
    assert!(stack.entries().is_empty());
}

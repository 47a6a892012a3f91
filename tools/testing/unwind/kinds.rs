// SPDX-License-Identifier: GPL-2.0

//! Sleeps in frames of Rust: closures, trait objects, a sort that calls back, and code that
//! catches panics, in which a value is dropped that sleeps.

use std::{
    collections::BTreeMap,
    hint::black_box,
    panic,
    thread,
    time::Duration, //
};

trait Step {
    fn step(&self, depth: u32) -> u64;
}

struct Recursive;

struct Asleep;

impl Drop for Asleep {
    fn drop(&mut self) {
        thread::sleep(Duration::from_secs(black_box(1000)));
        black_box(());
    }
}

impl Step for Recursive {
    #[inline(never)]
    fn step(&self, depth: u32) -> u64 {
        let next: &dyn Step = black_box(self);
        match depth {
            0 => sorted(),
            _ => black_box(next.step(depth - 1)) + 1,
        }
    }
}

#[inline(never)]
fn sorted() -> u64 {
    let mut numbers = black_box([2_u64, 1]);
    numbers.sort_by(|one, other| {
        unwound();
        one.cmp(other)
    });
    numbers[0]
}

/// Sleeps while a panic unwinds the stack.
#[inline(never)]
fn unwound() {
    let result = panic::catch_unwind(|| {
        let asleep = Asleep;
        let map: BTreeMap<u32, u32> = (0..black_box(3)).map(|n| (n, n)).collect();
        assert!(black_box(&map).len() > 100, "as expected");
        drop(asleep);
    });
    black_box(&result);
}

fn main() {
    panic::set_hook(Box::new(|_| ()));
    let other = thread::spawn(|| Recursive.step(5));
    println!("{:?}", other.join().map(black_box).is_ok());
}

// SPDX-License-Identifier: GPL-2.0

//! Sorting entries into the order that the C implementation prints them in.
//!
//! C sorts by the bytes of the key first, which are different for all entries, and then by the sort
//! keys of the trigger, with the kernel's heapsort (lib/sort.c). A heapsort is not stable, but
//! deterministic: the result depends on the entries only. So the same comparisons and exchanges
//! give C's order.

use core::cmp::Ordering;

use kernel::prelude::*;

/// Number of rounds between calls of `check_signal`.
const BATCH: usize = 1024;

/// Sorts `items`, making the comparisons and exchanges that lib/sort.c makes. Fails with the error
/// of `check_signal`, which is called now and then.
///
/// The heap has the largest item on top. Each round takes off the two largest.
pub fn heapsort<T>(
    items: &mut [T],
    mut compare: impl FnMut(&T, &T) -> Ordering,
    check_signal: &dyn Fn() -> Result,
) -> Result {
    let mut heap = items.len();
    if heap < 2 {
        return Ok(());
    }
    for top in (0..heap / 2).rev() {
        if top % BATCH == 0 {
            check_signal()?;
        }
        sink(&mut items[..heap], top, &mut compare);
    }
    while heap > 3 {
        if heap % BATCH < 2 {
            check_signal()?;
        }
        heap -= 1;
        items.swap(0, heap);
        let second = if compare(&items[1], &items[2]).is_gt() {
            1
        } else {
            2
        };
        heap -= 1;
        items.swap(second, heap);
        sink(&mut items[..heap], second, &mut compare);
        sink(&mut items[..heap], 0, &mut compare);
    }
    heap -= 1;
    items.swap(0, heap);
    if heap == 2 && compare(&items[0], &items[1]).is_gt() {
        items.swap(0, 1);
    }
    Ok(())
}

/// Moves the item at `top` down to its place in the heap: follows the larger children to a leaf,
/// then climbs to where the item belongs, which mostly is near the leaf.
fn sink<T>(heap: &mut [T], top: usize, compare: &mut impl FnMut(&T, &T) -> Ordering) {
    let mut at = top;
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        if right >= heap.len() {
            if right == heap.len() {
                at = left;
            }
            break;
        }
        at = if compare(&heap[left], &heap[right]).is_gt() {
            left
        } else {
            right
        };
    }
    while at != top && compare(&heap[top], &heap[at]).is_ge() {
        at = (at - 1) / 2;
    }
    let place = at;
    while at != top {
        at = (at - 1) / 2;
        heap.swap(at, place);
    }
}

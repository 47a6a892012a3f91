// SPDX-License-Identifier: GPL-2.0

//! The stand-in for the kernel crate itself.

use kernel::fault;
use kernel::prelude::*;

fn three() -> Result<usize> {
    let mut v = KVec::with_capacity(1, GFP_KERNEL)?;
    v.push(KBox::new(1u64, GFP_KERNEL)?, GFP_KERNEL)?;
    v.push_within_capacity(KBox::new(2u64, GFP_KERNEL)?)
        .expect_err("full");
    Ok(v.len())
}

#[test]
fn each_allocation_fails_once() {
    let mut failures = 0;
    let (result, allocations) = fault::each(three, |result| {
        assert_eq!(result, Err(ENOMEM));
        failures += 1;
    });
    assert_eq!(result, Ok(1));
    assert_eq!((allocations, failures), (3, 3));
    assert_eq!(fault::live(), 0);
}

#[test]
#[should_panic(expected = "leak after failure of allocation 1")]
fn a_leak_is_found() {
    let mut left = None;
    fault::each(
        || {
            left = Some(KVec::from_elem(0u8, 8, GFP_KERNEL)?);
            KBox::new(0u8, GFP_KERNEL)
        },
        |_| (),
    )
    .0
    .unwrap();
}

#[test]
fn kmalloc_has_a_limit() {
    assert!(KVec::<u8>::with_capacity(4 << 20, GFP_KERNEL).is_ok());
    assert!(KVec::<u8>::with_capacity((4 << 20) + 1, GFP_KERNEL).is_err());
    assert!(KVVec::<u8>::with_capacity((4 << 20) + 1, GFP_KERNEL).is_ok());
}

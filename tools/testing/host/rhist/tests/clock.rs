// SPDX-License-Identifier: GPL-2.0

//! When the CPUs' clock is read without a lock, for all combinations of known facts.

use rhist::event::clock::{
    CpuClock,
    Hypervisor, //
};

const HYPERVISORS: [Hypervisor; 3] = [Hypervisor::None, Hypervisor::Kvm, Hypervisor::Other];

fn known(
    hypervisor: Hypervisor,
    stable_bit_valid: bool,
    pvclock: Option<u8>,
    found_stable: Option<bool>,
) -> CpuClock {
    CpuClock {
        hypervisor,
        stable_bit_valid,
        pvclock,
        found_stable,
    }
}

/// All flags of a pvclock, and none.
fn pvclocks() -> impl Iterator<Item = Option<u8>> {
    (0..=u8::MAX).map(Some).chain([None])
}

/// Result of `kvmclock_init()` and `mark_tsc_unstable()` at boot: whether the clock is stable. The
/// time stamp counter is not marked unstable here.
fn kernel_finds(hypervisor: Hypervisor, stable_bit_valid: bool, pvclock: Option<u8>) -> bool {
    match (hypervisor, pvclock) {
        (Hypervisor::Kvm, Some(flags)) => {
            let valid_flags = if stable_bit_valid { 1 << 0 } else { 0 };
            flags & valid_flags & 1 << 0 != 0
        }
        _ => true,
    }
}

/// A guest boots, may move to a host with other flags, and then the module is loaded.
#[test]
fn a_clock_that_the_kernel_found_unstable_is_never_read_without_a_lock() {
    let mut lockless = 0;
    for hypervisor in HYPERVISORS {
        for valid in [false, true] {
            for at_boot in pvclocks() {
                for now in pvclocks().filter(|now| now.is_some() == at_boot.is_some()) {
                    let stable = kernel_finds(hypervisor, valid, at_boot);
                    for found in [None, Some(stable)] {
                        let one = known(hypervisor, valid, now, found).is_one();
                        assert!(
                            stable || !one,
                            "{hypervisor:?} {valid} {at_boot:?} {now:?} {found:?}"
                        );
                        lockless += u32::from(one);
                    }
                }
            }
        }
    }
    assert!(lockless > 0);
}

#[test]
fn what_each_case_comes_to() {
    for stable_bit_valid in [false, true] {
        for pvclock in pvclocks() {
            for found in [None, Some(false), Some(true)] {
                let one = |hypervisor| known(hypervisor, stable_bit_valid, pvclock, found).is_one();
                assert!(!one(Hypervisor::Other));
                let says_so = stable_bit_valid && pvclock.is_some_and(|flags| flags % 2 == 1);
                match (pvclock, found) {
                    (_, Some(false)) => assert!(!one(Hypervisor::Kvm)),
                    (Some(_), Some(true)) => assert_eq!(one(Hypervisor::Kvm), says_so),
                    // The host may have changed its flags since boot.
                    (Some(_), None) => assert!(!one(Hypervisor::Kvm)),
                    (None, _) => assert!(one(Hypervisor::Kvm)),
                }
                // Without a hypervisor, a pvclock is impossible.
                if pvclock.is_none() {
                    assert_eq!(one(Hypervisor::None), found != Some(false));
                }
            }
        }
    }
}

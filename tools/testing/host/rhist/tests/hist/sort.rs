// SPDX-License-Identifier: GPL-2.0

//! The order of entries.

use proptest::prelude::*;
use rhist::hist::show::sort::heapsort;

use super::events::*;
use super::oracle::kernel_file;
use super::oracle::Oracle;

/// Pseudo-random numbers, the same ones each time.
fn numbers(n: u32, below: u32, seed: u32) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 8) % below
    };
    (0..n).map(|_| next()).collect()
}

/// Indices into `numbers` in the order that the sort puts them in.
fn order(numbers: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    let compare = |&a: &u32, &b: &u32| numbers[a as usize].cmp(&numbers[b as usize]);
    heapsort(&mut order, compare, &|| Ok(())).unwrap();
    order
}

/// FNV-1a of the order's bytes.
fn digest(order: &[u32]) -> u64 {
    let bytes = order.iter().flat_map(|index| index.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Orders of a few numbers by lib/sort.c of Linux 7.3: the numbers, and the order of their indices.
#[test]
fn moves_of_the_kernel() {
    let cases: [(&[u32], &[u32]); 11] = [
        (&[0, 0], &[1, 0]),
        (&[0, 0, 0], &[2, 1, 0]),
        (&[0, 0, 0, 0], &[1, 3, 2, 0]),
        (&[0, 0, 0, 0, 0], &[3, 1, 4, 2, 0]),
        (&[0, 0, 0, 0, 0, 0], &[1, 3, 4, 5, 2, 0]),
        (&[0, 0, 0, 0, 0, 0, 0], &[3, 1, 4, 5, 6, 2, 0]),
        (&[0, 0, 0, 0, 0, 0, 0, 0], &[1, 3, 4, 5, 6, 7, 2, 0]),
        (&[0, 0, 0, 0, 0, 0, 0, 0, 0], &[3, 1, 4, 5, 6, 7, 8, 2, 0]),
        (&[1, 1, 0, 0, 2, 2, 1], &[3, 2, 1, 0, 6, 4, 5]),
        (&[3, 2, 1, 0], &[3, 2, 1, 0]),
        (&[0, 1, 0, 1, 0, 1, 0, 1], &[4, 6, 0, 2, 3, 7, 1, 5]),
    ];
    for (numbers, expected) in cases {
        assert_eq!(order(numbers), expected, "{numbers:?}");
    }
    assert!(order(&[]).is_empty());
    assert_eq!(order(&[1]), [0]);
}

/// Orders of many numbers by lib/sort.c of Linux 7.3: count, limit, seed, digest of the order.
#[test]
fn moves_of_the_kernel_with_many() {
    let cases = [
        (2, 1, 15, 0x89cd31291d2aefa4),
        (2, 2, 16, 0x08cd4c29d1e47d34),
        (2, 5, 19, 0x89cd31291d2aefa4),
        (2, 1000, 1014, 0x08cd4c29d1e47d34),
        (3, 1, 22, 0x1ff3f111c7bd8bd6),
        (3, 2, 23, 0x1ff3f111c7bd8bd6),
        (3, 5, 26, 0x9ef40c127c771966),
        (3, 1000, 1021, 0x756241e1be8c9396),
        (4, 1, 29, 0xdaf706c0487661f5),
        (4, 2, 30, 0xdf68c14ffc24c565),
        (4, 5, 33, 0x6926a236bc917315),
        (4, 1000, 1028, 0x8c6c611122773c35),
        (5, 1, 36, 0x0cad3013ef802341),
        (5, 2, 37, 0xb61757c933ea39e1),
        (5, 5, 40, 0x47fb94ccf0b1fd81),
        (5, 1000, 1035, 0x4bc7b293fd22e781),
        (10, 1, 71, 0x786113dbf51e84a4),
        (10, 2, 72, 0xccba03943212cf04),
        (10, 5, 75, 0xb95b4df813d0c8f4),
        (10, 1000, 1070, 0xd9524629f4eaa8b4),
        (11, 1, 78, 0x6392113c6caa57ce),
        (11, 2, 79, 0xe0e421c559bb1d1e),
        (11, 5, 82, 0x4d9825bd5f0277ae),
        (11, 1000, 1077, 0x9ef173fe3f1cc9ae),
        (100, 1, 701, 0xf653b15acf9212f5),
        (100, 2, 702, 0x68c049926bef8805),
        (100, 5, 705, 0x53de1e855f8a22a5),
        (100, 1000, 1700, 0x75f02b69d32cda75),
        (101, 1, 708, 0xe67afdf3d80196e1),
        (101, 2, 709, 0x639c468156600871),
        (101, 5, 712, 0x6b13cffa892a3651),
        (101, 1000, 1707, 0xaa478cb44a0db1a1),
        (2048, 1, 14337, 0x92a2ac2420b5ed75),
        (2048, 2, 14338, 0xe479a14d74144399),
        (2048, 5, 14341, 0xf0064a51a2b258d9),
        (2048, 1000, 15336, 0xc21cf1fbee85d401),
        (2049, 1, 14344, 0x9e2bf18ba6403fdd),
        (2049, 2, 14345, 0xa6b2e24e59a14555),
        (2049, 5, 14348, 0x018fd090243020fd),
        (2049, 1000, 15343, 0xefbc36bf94d40041),
        (5000, 1, 35001, 0xcd3c6bb52de843f5),
        (5000, 2, 35002, 0x817c7ad3c5d260f5),
        (5000, 5, 35005, 0x4b606203c41a6ed5),
        (5000, 1000, 36000, 0x40e29c4ad0a2f6e5),
    ];
    for (n, below, seed, expected) in cases {
        let order = order(&numbers(n, below, seed));
        assert_eq!(digest(&order), expected, "{n} {below} {seed}");
    }
}

/// The kernel's own lib/sort.c as the judge.
#[test]
fn moves_of_lib_sort() {
    let Some(code) = kernel_file("lib/sort.c") else {
        return;
    };
    let code: String = code
        .lines()
        .filter(|line| !line.starts_with("#include"))
        .map(|line| format!("{line}\n"))
        .collect();
    let oracle = Oracle::new("hist/sort_oracle.c", &[("sort.h", code)]);

    // All small sizes, then larger ones; first with few different numbers, then with many.
    let cases: Vec<Vec<u32>> = (0..200)
        .chain([255, 256, 257, 1000, 2047, 2048, 5001])
        .flat_map(|n| [1, 2, 3, 10, 1 << 20].map(|below| numbers(n, below, 31 * n + below)))
        .collect();
    let joined = |numbers: &Vec<u32>| {
        let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
        numbers.join(" ") + "\n"
    };
    let lines: String = cases.iter().map(joined).collect();
    let sorted = oracle.ask(lines);
    assert_eq!(sorted.len(), cases.len());
    for (numbers, sorted) in cases.iter().zip(sorted) {
        assert_eq!(joined(&order(numbers)).trim_end(), sorted, "{numbers:?}");
    }
}

proptest! {
    #[test]
    fn sorts(numbers in prop::collection::vec(0u32..50, 0..200)) {
        let order = order(&numbers);
        let sorted: Vec<u32> = order.iter().map(|&index| numbers[index as usize]).collect();
        let mut expected = numbers.clone();
        expected.sort_unstable();
        prop_assert_eq!(sorted, expected);
        let mut indices = order;
        indices.sort_unstable();
        prop_assert!(indices.into_iter().eq(0..numbers.len() as u32));
    }
}

/// The keys, as printed, of a histogram that has counted `pids`.
fn pids(params: &str, pids: &[i32]) -> Vec<String> {
    let hist = hist(&sched_waking(), params);
    for &pid in pids {
        waking(b"", pid).hit(&hist);
    }
    let key = |entry: String| entry.split_whitespace().nth(2).unwrap().to_string();
    entries(&hist).into_iter().map(key).collect()
}

#[test]
fn by_hitcount() {
    let hits = [1, 2, 2, 3, 3, 3];
    assert_eq!(pids("keys=pid", &hits), ["1", "2", "3"]);
    assert_eq!(pids("keys=pid:sort=hitcount", &hits), ["1", "2", "3"]);
    assert_eq!(
        pids("keys=pid:sort=hitcount.descending", &hits),
        ["3", "2", "1"]
    );
}

/// Entries with equal hitcounts have the order in which the heapsort leaves the order of the keys'
/// bytes.
#[test]
fn ties() {
    let hits = [256, 0, 3, 2, 1, 512, 4];
    // By their bytes (little endian): 0, 256, 512, 1, 2, 3, 4. The heapsort moves the indices of
    // seven equal items to 3, 1, 4, 5, 6, 2, 0.
    let expected = ["1", "256", "2", "3", "4", "512", "0"];
    assert_eq!(pids("keys=pid", &hits), expected);
    assert_eq!(pids("keys=pid:sort=hitcount.descending", &hits), expected);
}

#[test]
fn by_a_signed_key() {
    let minus = |n: u64| n.wrapping_neg().to_string();
    let hits = [5, -5, 0, i32::MIN, i32::MAX, 256, 1];
    let ascending = [
        minus(1 << 31),
        minus(5),
        "0".into(),
        "1".into(),
        "5".into(),
        "256".into(),
        i32::MAX.to_string(),
    ];
    assert_eq!(pids("keys=pid:sort=pid", &hits), ascending);
    assert_eq!(pids("keys=pid:sort=pid.ascending", &hits), ascending);
    let descending: Vec<_> = ascending.into_iter().rev().collect();
    assert_eq!(pids("keys=pid:sort=pid.descending", &hits), descending);
}

#[test]
fn by_numbers_of_every_width() {
    for (name, offset, size, signed) in [
        ("s8", 8, 1, true),
        ("u8", 9, 1, false),
        ("s16", 10, 2, true),
        ("u16", 12, 2, false),
        ("s32", 14, 4, true),
        ("u32", 18, 4, false),
        ("s64", 22, 8, true),
        ("u64", 30, 8, false),
    ] {
        let hist = hist(&zoo(), &format!("keys={name}:sort={name}"));
        let least = 1u64 << (8 * size - 1);
        for number in [1, u64::MAX, least, 0] {
            Bytes::new(ZOO_END)
                .put(offset, &number.to_le_bytes()[..size])
                .hit(&hist);
        }
        let key = |entry: &String| entry.split_whitespace().nth(2).unwrap().parse().unwrap();
        let keys: Vec<u64> = entries(&hist).iter().map(key).collect();
        let expected = if signed {
            [(u64::MAX << (8 * size - 1)), u64::MAX, 0, 1]
        } else {
            [0, 1, least, u64::MAX >> (64 - 8 * size)]
        };
        assert_eq!(keys, expected, "{name}");
    }
}

#[test]
fn by_strings() {
    let hist = hist(&sched_waking(), "keys=comm:sort=comm");
    for comm in [&b"b"[..], b"abc", b"ab", b"\xc3\xa4", b"a\0zzz", b"B", b""] {
        waking(comm, 1).hit(&hist);
    }
    let key = |entry: String| {
        entry.strip_prefix("{ comm: ").unwrap()[..4]
            .trim()
            .to_string()
    };
    let keys: Vec<_> = entries(&hist).into_iter().map(key).collect();
    assert_eq!(keys, ["", "B", "a", "ab", "abc", "b", "ä"]);
}

/// C compares a pointer to characters as if it were the characters themselves.
#[test]
fn by_pointers_to_strings() {
    let hist = hist(&zoo(), "keys=ptr:sort=ptr");
    for bytes in [
        [1, 2, 0, 9, 9, 9, 9, 9],
        [1, 1, 9, 9, 9, 9, 9, 9],
        [2, 0, 0, 0, 0, 0, 0, 0],
    ] {
        Bytes::new(ZOO_END).put(75, &bytes).hit(&hist);
    }
    let key = |entry: &String| {
        entry
            .split_whitespace()
            .nth(2)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let keys: Vec<_> = entries(&hist)
        .iter()
        .map(|e| key(e).to_ne_bytes()[..2].to_vec())
        .collect();
    assert_eq!(keys, [[1, 1], [1, 2], [2, 0]]);
}

/// C does not compare the names of tasks: the order is as in [`ties`].
#[test]
fn by_the_name_of_the_task() {
    let shown = |params| {
        let hist = hist(&zoo(), params);
        for comm in [b"c", b"b", b"a"] {
            let mut name = [0; 16];
            name[..1].copy_from_slice(comm);
            Bytes::new(ZOO_END).hit_in(&hist, 0, &name);
        }
        let key = |entry: String| entry.split_whitespace().nth(2).unwrap().to_string();
        entries(&hist).into_iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(shown("keys=common_comm:sort=common_comm"), ["c", "b", "a"]);
    assert_eq!(shown("keys=comm:sort=comm"), ["a", "b", "c"]);
}

#[test]
fn by_two_keys() {
    let hist = hist(&zoo(), "keys=u8,s8:vals=u16:sort=u16.descending,s8");
    for (u8, s8, u16) in [
        (1, 5, 2),
        (2, -5, 2),
        (3, 0, 1),
        (4, 1, 3),
        (5, -1, 1),
        (6, -6, 2),
    ] {
        Bytes::new(ZOO_END)
            .put(8, &[s8 as u8, u8])
            .put(12, &u16::to_ne_bytes(u16))
            .hit(&hist);
    }
    let key = |entry: String| {
        entry
            .split([':', ','])
            .nth(1)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let keys: Vec<u8> = entries(&hist).into_iter().map(key).collect();
    assert_eq!(keys, [4, 6, 2, 1, 5, 3]);
}

/// As numbers of 64 bits, with the sign of the first operand.
#[test]
fn by_expressions() {
    assert_eq!(
        pids("keys=pid-10:sort=pid-10", &[9, 10, 11]),
        [9, 10, 11].map(|n: u64| { n.wrapping_sub(10).to_string() })
    );
    let unsigned = |pid: u64| pid.wrapping_sub(10).to_string();
    assert_eq!(
        pids(
            "keys=common_flags-10+pid:sort=common_flags-10+pid",
            &[9, 10, 11]
        ),
        [10, 11, 9].map(unsigned)
    );
}

// SPDX-License-Identifier: GPL-2.0

//! The entry that a record counts for.

use kernel::sync::Arc;

use super::events::*;

/// The key of the only entry as the `hist` file shows it, without the padding of strings.
fn key(hist: &Arc<rhist::hist::Histogram>) -> String {
    let entries = entries(hist);
    let [entry] = &entries[..] else {
        panic!("{entries:?}");
    };
    let key = entry.strip_prefix("{ ").unwrap();
    let key = key.strip_suffix(" } hitcount:          1").unwrap();
    key.trim_end().to_string()
}

#[test]
fn numbers_of_every_width_and_sign() {
    let cases: [(&str, usize, &[u8], u64); 12] = [
        ("s8", 8, &[0x80], -128i64 as u64),
        ("s8", 8, &[0x7f], 127),
        ("u8", 9, &[0x80], 128),
        ("s16", 10, &(-2i16).to_ne_bytes(), -2i64 as u64),
        ("u16", 12, &65534u16.to_ne_bytes(), 65534),
        ("s32", 14, &(-1i32).to_ne_bytes(), u64::MAX),
        ("u32", 18, &u32::MAX.to_ne_bytes(), 4294967295),
        ("s64", 22, &i64::MIN.to_ne_bytes(), 1 << 63),
        ("u64", 30, &u64::MAX.to_ne_bytes(), u64::MAX),
        (
            "ptr",
            75,
            &0xffff_8881_0000_0000u64.to_ne_bytes(),
            0xffff_8881_0000_0000,
        ),
        ("mask", 83, &0x0008_0057u32.to_ne_bytes(), 0x0008_0057),
        ("common_pid", 4, &(-7i32).to_ne_bytes(), -7i64 as u64),
    ];
    for (name, offset, bytes, number) in cases {
        let hist = hist(&zoo(), &format!("keys={name}"));
        Bytes::new(ZOO_END).put(offset, bytes).hit(&hist);
        assert_eq!(key(&hist), format!("{name}: {number:>10}"));
    }
}

#[test]
fn common_fields() {
    let record = Bytes::new(8).put(0, &[0x39, 0x01, 0xff, 0x02]);
    for (name, number) in [
        ("common_type", u16::from_ne_bytes([0x39, 0x01])),
        ("common_flags", 255),
        ("common_preempt_count", 2),
    ] {
        let hist = hist(&zoo(), &format!("keys={name}"));
        record.hit(&hist);
        assert_eq!(key(&hist), format!("{name}: {number:>10}"));
    }
}

#[test]
fn of_fields_with_one_name_the_last_counts() {
    let hist = hist(&zoo(), "keys=twice");
    Bytes::new(ZOO_END).put(18, &5u32.to_ne_bytes()).hit(&hist);
    assert_eq!(key(&hist), "twice:          5");
}

#[test]
fn hitcount_as_a_key() {
    let hist = hist(&zoo(), "keys=hitcount");
    Bytes::new(ZOO_END).hit(&hist);
    assert_eq!(key(&hist), "hitcount:          1");
}

#[test]
fn cpu() {
    for name in ["common_cpu", "cpu", "CPU"] {
        let hist = hist(&zoo(), &format!("keys={name}"));
        Bytes::new(ZOO_END).hit_in(&hist, 3, &[0; 16]);
        assert_eq!(key(&hist), format!("{name}:          3"));
    }
}

#[test]
fn name_of_the_task() {
    for name in ["common_comm", "comm", "COMM"] {
        let hist = hist(&zoo(), &format!("keys={name}"));
        // Bytes behind the NUL do not count.
        Bytes::new(ZOO_END).hit_in(&hist, 0, b"init\0\0\0\0\0\0\0\0\0\0\0\0");
        Bytes::new(ZOO_END).hit_in(&hist, 0, b"init\0left behind");
        let entry = format!("{{ {name}: {:<50} }} hitcount:          2", "init");
        assert_eq!(entries(&hist), [entry]);
    }
    // Torn by a rename: without any NUL.
    let hist = hist(&zoo(), "keys=common_comm");
    Bytes::new(ZOO_END).hit_in(&hist, 0, b"0123456789abcdef");
    assert_eq!(key(&hist), "common_comm: 0123456789abcde");
}

#[test]
fn own_fields_come_before_generic_ones() {
    let hist = hist(&sched_waking(), "keys=comm");
    waking(b"bash", 1).hit(&hist);
    assert_eq!(key(&hist), "comm: bash");
}

#[test]
fn static_strings() {
    // The last byte of the padded key is a NUL: 13 bytes are kept whole, 16 lose the last.
    let hist13 = hist(&zoo(), "keys=odd");
    let hist16 = hist(&zoo(), "keys=even");
    let record = Bytes::new(ZOO_END)
        .put(38, b"ABCDEFGHIJKLM")
        .put(51, b"0123456789abcdef");
    record.hit(&hist13);
    record.hit(&hist16);
    assert_eq!(key(&hist13), "odd: ABCDEFGHIJKLM");
    assert_eq!(key(&hist16), "even: 0123456789abcde");
}

#[test]
fn what_follows_the_nul_of_a_static_string_tells_keys_apart() {
    let hist = hist(&zoo(), "keys=even");
    let record = Bytes::new(ZOO_END).put(51, b"same\0\0\0\0\0\0\0\0\0\0\0\0");
    record.hit(&hist);
    record.clone().put(51 + 14, b"x").hit(&hist);
    record.clone().put(51 + 15, b"x").hit(&hist);
    let entries = entries(&hist);
    let entry = |n| format!("{{ even: {:<50} }} hitcount: {n:>10}", "same");
    // In the array, the last byte does not count.
    assert_eq!(entries, [entry(1), entry(2)]);
}

#[test]
fn dynamic_strings() {
    for (name, put) in [
        ("dyn", Bytes::data_loc as fn(Bytes, usize, &[u8]) -> Bytes),
        ("rel", Bytes::rel_loc),
    ] {
        let offset = if name == "dyn" { 67 } else { 71 };
        let record = |bytes: &[u8]| put(Bytes::new(ZOO_END), offset, bytes);
        let shown = |bytes: &[u8]| {
            let hist = hist(&zoo(), &format!("keys={name}"));
            record(bytes).hit(&hist);
            let key = key(&hist);
            key.strip_prefix(&format!("{name}: "))
                .unwrap_or("")
                .to_string()
        };
        assert_eq!(shown(b"/bin/true\0"), "/bin/true");
        assert_eq!(shown(b"no nul"), "no nul");
        assert_eq!(shown(b""), "");
        let long = [b'x'; 300];
        assert_eq!(shown(&long[..254]), "x".repeat(254));
        assert_eq!(shown(&long[..255]), "x".repeat(255));
        assert_eq!(shown(&long), "x".repeat(255));
    }
}

/// A short string takes another path than a long one, and so does a new one.
#[test]
fn dynamic_strings_of_each_length() {
    let hist = hist(&zoo(), "keys=dyn");
    let text = |len: usize| -> Vec<u8> { (0..len).map(|n| b'a' + (len + n) as u8 % 26).collect() };
    for _ in 0..3 {
        for len in 0..100 {
            let mut bytes = text(len);
            Bytes::new(ZOO_END).data_loc(67, &bytes).hit(&hist);
            bytes.push(0);
            Bytes::new(ZOO_END).data_loc(67, &bytes).hit(&hist);
        }
    }
    let mut expected: Vec<String> = (0..100)
        .map(|len| {
            let text = String::from_utf8(text(len)).unwrap();
            format!("{{ dyn: {text:<50} }} hitcount: {:>10}", 6)
        })
        .collect();
    let mut entries = entries(&hist);
    expected.sort();
    entries.sort();
    assert_eq!(entries, expected);
}

#[test]
fn what_follows_the_nul_of_a_dynamic_string_tells_keys_apart() {
    let hist = hist(&zoo(), "keys=dyn");
    for bytes in [&b"same\0"[..], b"same", b"same\0\0", b"same\0x"] {
        Bytes::new(ZOO_END).data_loc(67, bytes).hit(&hist);
    }
    let entry = |n| format!("{{ dyn: {:<50} }} hitcount: {n:>10}", "same");
    assert_eq!(entries(&hist), [entry(1), entry(3)]);
}

#[test]
fn records_that_are_too_short_read_as_nothing() {
    for (name, shown) in [
        ("s32", "s32:          0"),
        ("even", "even:"),
        ("dyn", "dyn:"),
        ("rel", "rel:"),
    ] {
        let hist = hist(&zoo(), &format!("keys={name}"));
        Bytes::new(8).hit(&hist);
        assert_eq!(key(&hist), shown);
    }
}

#[test]
fn a_full_map_counts_what_it_drops() {
    let hist = hist(&sched_waking(), "keys=pid:size=128");
    for pid in (0..130).chain(0..130) {
        waking(b"", pid).hit(&hist);
    }
    assert_eq!((hist.hits(), hist.drops()), (256, 4));
    let file = hist_file(&hist);
    assert!(file.ends_with("\nTotals:\n    Hits: 256\n    Entries: 128\n    Dropped: 4\n"));
}

#[test]
fn sums_of_all_cpus_are_added_up() {
    let hist = hist(&sched_waking(), "keys=pid");
    for cpu in 0..CPUS {
        for _ in 0..=cpu {
            waking(b"", 1).hit_in(&hist, cpu, &[0; 16]);
        }
    }
    assert_eq!(entries(&hist), ["{ pid:          1 } hitcount:         10"]);
}

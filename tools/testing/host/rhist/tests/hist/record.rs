// SPDX-License-Identifier: GPL-2.0

//! Reading records: every width, and what lies beyond the end.

use rhist::event::number::Numbers;
use rhist::event::Record;

#[test]
fn numbers_need_not_be_aligned() {
    let bytes: Vec<u8> = (1..=16).collect();
    let record = Record::new(&bytes);
    assert_eq!(record.u8(15), 16);
    assert_eq!(record.u16(1), u16::from_ne_bytes([2, 3]));
    assert_eq!(record.u32(3), u32::from_ne_bytes([4, 5, 6, 7]));
    assert_eq!(
        record.u64(7),
        u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15])
    );
}

#[test]
fn beyond_the_end_is_zero() {
    let record = Record::new(&[0xff; 8]);
    assert_eq!(record.u64(0), u64::MAX);
    assert_eq!(record.u64(1), 0);
    assert_eq!(record.u32(5), 0);
    assert_eq!(record.u16(7), 0);
    assert_eq!(record.u8(8), 0);
    assert_eq!(record.u8(u32::MAX), 0);
    assert_eq!(record.u64(u32::MAX), 0);
}

#[test]
fn bytes_end_with_the_record() {
    let record = Record::new(b"0123456789");
    assert_eq!(record.bytes(2, 3), b"234");
    assert_eq!(record.bytes(8, 3), b"89");
    assert_eq!(record.bytes(10, 1), b"");
    assert_eq!(record.bytes(11, 1), b"");
    assert_eq!(record.bytes(usize::MAX, usize::MAX), b"");
}

#[test]
fn dynamic_fields() {
    let word = |offset: u32, len: u32| (offset | len << 16).to_ne_bytes();
    let mut bytes = *b"____....text\0";
    bytes[4..8].copy_from_slice(&word(8, 5));
    assert_eq!(Record::new(&bytes).data_loc(4), b"text\0");
    bytes[4..8].copy_from_slice(&word(0, 5));
    assert_eq!(Record::new(&bytes).rel_loc(4), b"text\0");
    // Too long, beginning behind the end, and a word that lies outside of the record.
    bytes[4..8].copy_from_slice(&word(10, 0xffff));
    assert_eq!(Record::new(&bytes).data_loc(4), b"xt\0");
    bytes[4..8].copy_from_slice(&word(0xffff, 0xffff));
    assert_eq!(Record::new(&bytes).data_loc(4), b"");
    assert_eq!(Record::new(&bytes).rel_loc(4), b"");
    assert_eq!(Record::new(&bytes).data_loc(11), b"");
    assert_eq!(Record::new(&bytes).rel_loc(u32::MAX), b"");
}

// SPDX-License-Identifier: GPL-2.0

//! Any description of an event: no panic, and the printed text parses to the same.

#![cfg(not(loom))]

use kernel::prelude::KVec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rhist::user_events::description::Description;
use rhist::user_events::field::declares;
use rhist::user_events::field::normalized;
use rhist::user_events::field::UserFields;

/// Returns whether a list with the text in one of its lines can be read line by line.
fn is_shown_safely(text: &[u8]) -> bool {
    !text.is_empty()
        && !text
            .iter()
            .any(|byte| byte.is_ascii_control() || *byte == b'#')
}

/// Exercises a text and a payload.
fn exercise(text: &[u8], payload: &[u8]) {
    if let Ok(description) = Description::parse(text) {
        assert!(is_shown_safely(description.name));
    }
    let Ok(fields) = UserFields::parse(text) else {
        return;
    };
    let mut at = 8;
    for field in fields.iter() {
        assert_eq!(field.offset, at);
        assert!(field.size > 0 && !field.name.is_empty());
        at += field.size;
    }
    assert_eq!(fields.min_size(), at as usize - 8);
    // The kernel part refuses shorter payloads earlier; they do no harm here.
    fields.accept(payload);
    normalized(text).unwrap();

    let mut declared = KVec::new();
    fields.declare(&mut declared).unwrap();
    assert!(declared.is_empty() || is_shown_safely(&declared));
    let again = UserFields::parse(&declared).unwrap();
    let sizes = |fields: &UserFields| fields.iter().map(|field| field.size).collect::<Vec<_>>();
    assert_eq!(sizes(&fields), sizes(&again));
    assert_eq!(
        fields.print_fmt().unwrap()[..],
        again.print_fmt().unwrap()[..]
    );
}

/// Pieces that declarations are made of, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "u32",
        "s64",
        "int",
        "char",
        "char[",
        "char[20]",
        "unsigned",
        "struct",
        "__data_loc",
        "__rel_loc",
        "char[]",
        " ",
        " ",
        " ",
        " ",
        ";",
        ";",
        "a",
        "b",
        "20",
        "0",
        "0x",
        "]",
        "\t",
        "65536",
        "\n",
        "#",
        "\"",
    ]);
    vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Declarations that are right.
fn declarations() -> impl Strategy<Value = String> {
    let type_ = select(vec![
        "u8",
        "unsigned short",
        "int",
        "s64",
        "char[7]",
        "unsigned char[3]",
        "__data_loc char[]",
        "__rel_loc u8[]",
        "struct x",
    ]);
    let field = (type_, "[a-z_]{1,8}", 1u32..2000).prop_map(|(type_, name, size)| match type_ {
        "struct x" => format!("{type_} {name} {size}"),
        _ => format!("{type_} {name}"),
    });
    vec(field, 0..12).prop_map(|fields| fields.join(";"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(text in vec(any::<u8>(), 0..512), payload in vec(any::<u8>(), 0..64)) {
        exercise(&text, &payload);
    }

    #[test]
    fn any_pieces(text in pieces(), payload in vec(any::<u8>(), 0..64)) {
        exercise(&text, &payload);
    }

    /// Blanks do not change a declaration; a missing field does.
    #[test]
    fn any_declaration(text in declarations(), payload in vec(0u8..24, 0..64)) {
        exercise(text.as_bytes(), &payload);
        let fields = UserFields::parse(text.as_bytes()).unwrap();
        let ours = fields.normalized().unwrap();
        let matches = |text: &str| {
            let same = normalized(text.as_bytes()).unwrap()[..] == ours[..];
            assert_eq!(declares(text.as_bytes(), &ours), same, "{text}");
            same
        };
        prop_assert!(matches(&text));
        prop_assert!(matches(&text.replace(';', ";  ").replace(' ', "\t ")));
        if let Some((rest, _)) = text.rsplit_once(';') {
            prop_assert!(!matches(rest));
            let ended = format!("{text};");
            prop_assert!(matches(&ended));
        }
        let longer = format!("{text};u8 more");
        prop_assert!(!matches(&longer));
    }

    /// The check of a string, against a description of it in other words.
    #[test]
    fn any_string(offset in 0u32..24, len in 0u32..24, tail in vec(0u8..2, 0..16), relative: bool) {
        let kind = if relative { "__rel_loc" } else { "__data_loc" };
        let fields = UserFields::parse(format!("{kind} char[] s").as_bytes()).unwrap();
        let payload = [&(len << 16 | offset).to_ne_bytes()[..], &tail].concat();
        let record = [&[1; 8][..], &payload].concat();
        let end = (if relative { 12 } else { 0 } + offset + len) as usize;
        let expected = end >= 1 && end <= record.len() && record[end - 1] == 0;
        prop_assert_eq!(fields.accept(&payload), expected);
    }
}

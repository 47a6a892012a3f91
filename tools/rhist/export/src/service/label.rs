// SPDX-License-Identifier: MIT OR Apache-2.0

//! Values of labels, made from keys.

use std::fmt::Write;

use rhist_core::names::Names;
use rhist_core::question::Question;
use rhist_core::table::Column;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Text;

/// Substitute for an address.
const HIDDEN: &str = "address";

/// Formats keys as labels.
pub struct Labeler<'a> {
    /// Source of the kinds of names.
    pub question: &'a Question,
    /// Names of numbers.
    pub names: &'a Names,
    /// Whether to expose kernel addresses, which defeats address space randomization.
    pub addresses: bool,
}

impl Labeler<'_> {
    /// Value of a label, without characters that a terminal would interpret.
    pub fn label(&self, column: &Column, key: &Key) -> String {
        match key {
            // First: a name may be its digits.
            Key::Number(_) | Key::Range { .. } if !self.addresses && self.question.has_address(&column.name, key) => {
                HIDDEN.to_owned()
            }
            Key::Number(number) => {
                let kind = self.question.name_kind(&column.name);
                match self.names.name(kind, &column.name, *number) {
                    Some(name) => Text::from(name.as_str()).to_string(),
                    None => number.to_string(),
                }
            }
            Key::Address(frame) => self.frame(frame),
            Key::Stack(frames) => {
                let mut text = String::new();
                for frame in frames.iter().rev() {
                    let between = if text.is_empty() { "" } else { ";" };
                    let _ = write!(text, "{between}{}", self.frame(frame));
                }
                text
            }
            _ => key.to_string(),
        }
    }

    fn frame(&self, frame: &Frame) -> String {
        match frame.symbol {
            None if frame.address.is_some() && !self.addresses => HIDDEN.to_owned(),
            _ => frame.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rhist_core::recipe::NameKind;

    use super::*;

    #[test]
    fn no_address_is_told_unless_asked_for() {
        let (question, names) = (Question::default(), Names::elsewhere());
        let labels = |key: &Key| {
            let label = |addresses| {
                Labeler {
                    question: &question,
                    names: &names,
                    addresses,
                }
                .label(&Column::default(), key)
            };
            (label(false), label(true))
        };
        let same = |key: &Key, text: &str| assert_eq!(labels(key), (text.to_owned(), text.to_owned()));
        let address = 0xffff_ffff_8101_2345_u64;
        let hidden = ("address".to_owned(), format!("{address:#x}"));
        let frame = |address, symbol: Option<&str>| Frame {
            address,
            symbol: symbol.map(str::to_owned),
        };
        assert_eq!(labels(&Key::Address(frame(Some(address), None))), hidden);
        assert_eq!(labels(&Key::Number(address.into())), (hidden.0, address.to_string()));
        same(
            &Key::Address(frame(Some(address), Some("do_idle+0x12/0x30"))),
            "do_idle+0x12/0x30",
        );
        // The same address in a signed field.
        let signed = i128::from(address.cast_signed());
        for key in [
            Key::Number(signed),
            Key::Number(-10_485_761),
            Key::Range {
                first: signed,
                last: signed + 9,
            },
            Key::Range {
                first: -(1 << 50),
                last: signed,
            },
        ] {
            assert_eq!(labels(&key), (HIDDEN.to_owned(), key.to_string()));
        }
        for near_zero in [-4095, -5000, -10_485_760] {
            same(&Key::Number(near_zero), &near_zero.to_string());
        }
        same(&Key::Number(-1), "-1");
        same(&Key::Number(u64::MAX.into()), "18446744073709551615");
        same(&Key::Number(-(1 << 49)), "-562949953421312");
        same(&Key::Number(i64::MAX.into()), "9223372036854775807");
        let hexadecimal = Question {
            names: BTreeMap::from([("x".to_owned(), NameKind::Hex)]),
            ..Question::default()
        };
        let column = Column {
            name: "x".to_owned(),
            ..Column::default()
        };
        let label = |number: u64, addresses| {
            let labeler = Labeler {
                question: &hexadecimal,
                names: &names,
                addresses,
            };
            labeler.label(&column, &Key::Number(number.into()))
        };
        assert_eq!(label(0x1f, false), "0x1f");
        assert_eq!(label(address, false), HIDDEN);
        assert_eq!(label(address, true), "0xffffffff81012345");
        let stack = vec![frame(Some(address), Some("schedule")), frame(Some(address), None)];
        assert_eq!(
            labels(&Key::Stack(stack)),
            ("address;schedule".to_owned(), format!("{address:#x};schedule"))
        );
    }
}

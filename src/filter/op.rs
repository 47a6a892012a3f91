// SPDX-License-Identifier: GPL-2.0

//! The operators of predicates.

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Glob,
    NotEqual,
    Equal,
    LessOrEqual,
    Less,
    GreaterOrEqual,
    Greater,
    And,
}

/// The operators. One that is a prefix of another comes after it.
pub(super) const OPS: [(&[u8], Op); 8] = [
    (b"~", Op::Glob),
    (b"!=", Op::NotEqual),
    (b"==", Op::Equal),
    (b"<=", Op::LessOrEqual),
    (b"<", Op::Less),
    (b">=", Op::GreaterOrEqual),
    (b">", Op::Greater),
    (b"&", Op::And),
];

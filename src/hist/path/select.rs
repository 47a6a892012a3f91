// SPDX-License-Identifier: GPL-2.0

//! The choice of a path for a program.

use kernel::prelude::*;

use super::{
    columns::{
        ColumnFields,
        DistributionFields, //
    },
    fields::{
        KeyFields,
        KeyWord,
        RecordFields,
        TextField, //
    },
    group::GroupFields,
    var_fields::VarFields,
    Path, //
};
use crate::{
    event::{
        AddressField,
        Number,
        NumberType,
        Scale, //
    },
    hist::{
        program::{
            content::Content,
            key::KeyPart,
            number::{
                ColumnValue,
                DistributionCode, //
            },
            Program, //
        },
        spec::target::Targets, //
    },
    map::Column, //
};

impl Path {
    /// Chooses the path for a program, which was compiled with `targets`: the first that does all
    /// that it needs. Fails with `ENOMEM`.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    pub(in crate::hist) fn of(program: &Program, targets: &Targets) -> Result<Self> {
        Ok(match program.only_counts() {
            true => Self::of_counts(program)?,
            false => match VarFields::new(program, targets)? {
                Some(fields) if fields.emits() => Self::Trace(fields),
                Some(fields) if fields.reads() => Self::Latency(fields),
                Some(fields) => Self::Set(fields),
                None => Self::Execute,
            },
        })
    }

    /// The path for a program without variables and actions.
    fn of_counts(program: &Program) -> Result<Self> {
        let (parts, values) = (&program.parts[..], &program.values[..]);
        if program.pid.is_none() {
            let mut columns = program.columns.iter().skip(1);
            let sums = values.len() + 1 == program.columns.len()
                && columns.all(|&column| column == Column::Sum);
            if sums {
                if let Some(fields) = record_fields(parts, values)? {
                    return Ok(Self::Fields(fields));
                }
                if let Some(fields) = group_fields(parts, values)? {
                    return Ok(Self::Group(fields));
                }
            }
            if let Some(fields) = column_fields(parts, values)? {
                return Ok(match distributions(values)? {
                    Some(distributions) => {
                        Self::Distributions(DistributionFields::new(fields, distributions))
                    }
                    None => Self::Columns(fields),
                });
            }
        }
        if let Some(fields) = record_fields(parts, &[])? {
            return Ok(Self::Words(fields));
        }
        Ok(match parts {
            [part] if matches!(part.content, Content::Stack) => Self::Stack,
            [part] if part.is_user_stack() => Self::UserStack,
            _ if !program.interned.is_empty() => Self::Stacks,
            _ => Self::Execute,
        })
    }
}

/// Calls `make` with the fields of the record that a key of `parts` consists of; returns `None` if
/// some parts are not fields. Fails with `ENOMEM`, and as `make` does.
fn with_key_fields<T>(
    parts: &[KeyPart],
    make: impl FnOnce(&KeyFields<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    if let [part] = parts {
        if let Some(text) = text_field(part) {
            return make(&KeyFields::Text(text));
        }
    }
    let mut key = KVec::new();
    for part in parts {
        if !add_words(part, &mut key)? {
            return Ok(None);
        }
    }
    make(&KeyFields::Words(&key))
}

/// The fields of the record that `values` consist of, for columns that are sums; `None` if some are
/// not fields. Fails with `ENOMEM`.
fn sum_fields(values: &[ColumnValue]) -> Result<Option<KVec<Number>>> {
    let mut sums = KVec::with_capacity(values.len(), GFP_KERNEL)?;
    for value in values {
        let Some((number, Scale::One)) = value.value.recorded() else {
            return Ok(None);
        };
        sums.push(number, GFP_KERNEL)?;
    }
    Ok(Some(sums))
}

/// The fields of the record that `parts` and `values` consist of, for columns that are sums; `None`
/// if some are not fields. Fails with `ENOMEM`.
fn record_fields(parts: &[KeyPart], values: &[ColumnValue]) -> Result<Option<RecordFields>> {
    match sum_fields(values)? {
        Some(sums) => with_key_fields(parts, |key| RecordFields::new(key, sums)),
        None => Ok(None),
    }
}

/// Like [`record_fields`], for a key that is the control group of a task.
fn group_fields(parts: &[KeyPart], values: &[ColumnValue]) -> Result<Option<GroupFields>> {
    let [part] = parts else {
        return Ok(None);
    };
    let (task, sums) = (part.content.group(), sum_fields(values)?);
    Ok(task
        .zip(sums)
        .and_then(|(task, sums)| GroupFields::new(task, sums)))
}

/// The fields of the record that `parts` and `values` consist of, for columns of any kind; `None`
/// if some are not fields. Fails with `ENOMEM`.
fn column_fields(parts: &[KeyPart], values: &[ColumnValue]) -> Result<Option<ColumnFields>> {
    let mut fields = KVec::with_capacity(values.len(), GFP_KERNEL)?;
    for value in values {
        let Some((number, Scale::One)) = value.value.recorded() else {
            return Ok(None);
        };
        fields.push((number, value.columns), GFP_KERNEL)?;
    }
    with_key_fields(parts, |key| ColumnFields::new(key, fields))
}

/// For each value, its distribution; `None` if no value has one. Fails with `ENOMEM`.
fn distributions(values: &[ColumnValue]) -> Result<Option<KVec<Option<DistributionCode>>>> {
    if values.iter().all(|value| value.distribution.is_none()) {
        return Ok(None);
    }
    let mut distributions = KVec::with_capacity(values.len(), GFP_KERNEL)?;
    for value in values {
        distributions.push(value.distribution, GFP_KERNEL)?;
    }
    Ok(Some(distributions))
}

/// Returns the string field that a part of the key is, if the record says where the string is;
/// `None` for other parts.
fn text_field(part: &KeyPart) -> Option<TextField> {
    let (offset, is_relative) = match part.content {
        Content::DataLoc(offset) => (offset, false),
        Content::RelLoc(offset) => (offset, true),
        _ => return None,
    };
    Some(TextField::new(offset, is_relative, part.max_chars()))
}

/// Appends the words of a part to the words of a key; `false` if it is not a plain field of the
/// record.
fn add_words(part: &KeyPart, key: &mut KVec<(KeyWord, Scale)>) -> Result<bool> {
    match part.content {
        Content::Number(value) => match value.recorded() {
            Some((number, scale)) => key.push((KeyWord::number(number), scale), GFP_KERNEL)?,
            None => return Ok(false),
        },
        // The last character becomes a NUL: see `KeyPart::max_chars()`.
        Content::Array {
            offset,
            len,
            unpadded: false,
        } if len as usize == part.len && len >= 8 && len % 8 == 0 => {
            for at in (offset..offset + len - 8).step_by(8) {
                let word = KeyWord::number(Number::new(NumberType::U64, at));
                key.push((word, Scale::One), GFP_KERNEL)?;
            }
            key.push((KeyWord::tail(offset + len - 8), Scale::One), GFP_KERNEL)?;
        }
        Content::Address(AddressField::V6(offset)) => {
            for at in [offset, offset + 8] {
                let word = KeyWord::number(Number::new(NumberType::U64, at));
                key.push((word, Scale::One), GFP_KERNEL)?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

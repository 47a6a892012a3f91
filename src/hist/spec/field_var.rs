// SPDX-License-Identifier: GPL-2.0

//! Fields that actions read by way of a variable, and references to the variable of a field.

use kernel::prelude::*;

use super::{
    field::{
        Function,
        HistField, //
    },
    variable::{
        text_size,
        VarRef,
        Variable, //
    },
};
use crate::text::copy;

/// A field that an action reads, and the variable that holds it (`struct field_var`).
#[derive(Debug)]
pub struct FieldVar {
    /// The variable, which no trigger can refer to.
    pub variable: Variable,
    /// Its content.
    pub value: HistField,
}

impl FieldVar {
    /// Bytes of its content if that is characters, with a NUL.
    pub fn text_size(&self) -> usize {
        text_size(self.value.size)
    }
}

impl VarRef {
    /// A reference to the variable `field` of the same histogram. Fails with `ENOMEM`.
    pub(super) fn new(field: &HistField, qualifier: Option<[&[u8]; 2]>) -> Result<Self> {
        let variable = field.variable.as_ref().ok_or(EINVAL)?;
        Ok(Self {
            usecs: field.is_usecs(),
            c_signed: field.c_signed(),
            constant: match field.function {
                Function::Const(number) => Some(number),
                _ => None,
            },
            ..Self::to(variable, field, qualifier)?
        })
    }

    /// A reference to a field variable of the same histogram, which is unsigned for C. Fails with
    /// `ENOMEM`.
    pub(super) fn of_field_var(var: &FieldVar, qualifier: Option<[&[u8]; 2]>) -> Result<Self> {
        Self::to(&var.variable, &var.value, qualifier)
    }

    fn to(variable: &Variable, content: &HistField, qualifier: Option<[&[u8]; 2]>) -> Result<Self> {
        Ok(Self {
            home: None,
            index: variable.index,
            name: copy(&variable.name)?,
            qualifier: match qualifier {
                Some([system, event]) => Some([copy(system)?, copy(event)?]),
                None => None,
            },
            type_: copy(content.type_())?,
            size: content.size,
            signed: content.signed(),
            c_signed: false,
            kind: content.kind(),
            usecs: false,
            constant: None,
            slot: 0,
        })
    }
}

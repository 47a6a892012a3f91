// SPDX-License-Identifier: GPL-2.0

//! The `hist_debug` file as text: what a histogram is made of.

use kernel::prelude::*;

use super::field::Function;
use super::field::HistField;
use super::field::Role;
use super::render;
use super::View;
use crate::text::Text;

/// Appends the `hist_debug` file of an event with the histograms `views`, each with what stands for
/// its address (`%p`). Fails with `ENOMEM`.
pub fn hist_debug_file<'a>(
    out: &mut Text,
    views: impl Iterator<Item = (View<'a>, &'a [u8])>,
) -> Result {
    for (n, (view, address)) in views.enumerate() {
        render::title(out, &view, n)?;
        let plan = view.hist.plan();
        out.bytes(b"hist_data: ")?;
        out.bytes(address)?;
        out.format(format_args!(
            "\n\n  n_vals: {}\n  n_keys: {}\n  n_fields: {}\n",
            plan.vals().len(),
            plan.keys().len(),
            plan.fields.len()
        ))?;
        out.bytes(b"\n  val fields:\n")?;
        for (n, field) in plan.vals().iter().enumerate() {
            show_field(out, n, field)?;
        }
        out.bytes(b"\n  key fields:\n")?;
        for (n, field) in plan.keys().iter().enumerate() {
            show_field(out, plan.n_vals + n, field)?;
        }
    }
    Ok(())
}

fn show_field(out: &mut Text, n: usize, field: &HistField) -> Result {
    let kind = match (field.role, field.function) {
        (Role::Key, _) => "HIST_FIELD_FL_KEY",
        (Role::Value { .. }, Function::Counter) => "VAL: HIST_FIELD_FL_HITCOUNT",
        (Role::Value { .. }, _) => "VAL: normal u64 value",
    };
    out.format(format_args!(
        "\n    hist_data->fields[{n}]:\n      flags:\n        {kind}\n"
    ))?;
    if let Function::Const(_) = field.function {
        out.bytes(b"        HIST_FIELD_FL_CONST\n")?;
    }
    if let Some(event_field) = &field.event_field {
        out.bytes(b"      ftrace_event_field name: ")?;
        out.bytes(&event_field.name)?;
        out.bytes(b"\n")?;
    }
    if let Function::Const(number) = field.function {
        out.format(format_args!("      constant: {number}\n"))?;
    }
    out.bytes(b"      type: ")?;
    out.bytes(field.type_())?;
    out.format(format_args!(
        "\n      size: {}\n      is_signed: {}\n      function: hist_field_{}()\n",
        field.size,
        u8::from(field.signed()),
        field.function_name()
    ))
}

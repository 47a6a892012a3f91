// SPDX-License-Identifier: GPL-2.0

//! The `hist_debug` file as text: the internals of histograms.

use kernel::prelude::*;

use super::{
    trigger::{
        listed,
        title, //
    },
    View, //
};
use crate::{
    event::Unit,
    hist::{
        spec::{
            action::Handler,
            field::{
                Function,
                HistField,
                Role, //
            },
            field_var::FieldVar,
            variable::VarRef,
            Distributions, //
        },
        Spec, //
    },
    text::Text,
    trigger::{
        Expire,
        Full, //
    },
};

/// Appends the `hist_debug` file of an event with the histograms `views`. Fails with `ENOMEM`.
pub fn hist_debug_file<'a>(out: &mut Text, views: impl Iterator<Item = View<'a>>) -> Result {
    for (n, view) in views.enumerate() {
        title(out, &view, n, |_| Ok(()))?;
        Debug { view, out }.show()?;
    }
    Ok(())
}

/// A histogram that is being shown.
struct Debug<'a, 'b> {
    view: View<'a>,
    out: &'b mut Text,
}

impl Debug<'_, '_> {
    fn show(&mut self) -> Result {
        let spec = self.view.hist.spec();
        let n_vals = spec.vals.len() + spec.vars.len();
        self.out.bytes(b"hist_data: ")?;
        self.view.names.address(self.out, self.view.hist)?;
        self.out.format(format_args!(
            "\n\n  n_vals: {}\n  n_keys: {}\n  n_fields: {}\n",
            n_vals,
            spec.keys.len(),
            n_vals + spec.keys.len()
        ))?;
        self.out.bytes(b"\n  val fields:\n")?;
        for (n, field) in spec.fields().enumerate() {
            if n == n_vals {
                self.out.bytes(b"\n  key fields:\n")?;
            }
            self.out
                .format(format_args!("\n    hist_data->fields[{n}]:\n"))?;
            self.show_field(field)?;
        }
        if !spec.refs.is_empty() {
            self.out.bytes(b"\n  variable reference fields:\n")?;
        }
        for (n, reference) in spec.refs.iter().enumerate() {
            self.out
                .format(format_args!("\n    hist_data->var_refs[{n}]:\n"))?;
            self.show_var_ref(&reference.var)?;
        }
        if !spec.field_vars.is_empty() {
            self.out.bytes(b"\n  field variables:\n")?;
        }
        if !self.show_field_vars("field_vars", &spec.field_vars)? {
            return Ok(());
        }
        self.show_actions(spec)?;
        if !spec.save_vars.is_empty() {
            self.out
                .bytes(b"\n  save action variables (save() params):\n")?;
        }
        self.show_field_vars("save_vars", &spec.save_vars)?;
        self.show_own(spec)
    }

    /// Shows the clauses that C lacks, if the trigger has them.
    fn show_own(&mut self, spec: &Spec) -> Result {
        if !spec.on.is_empty() {
            self.out.bytes(b"\n  lookup key fields (on() params):\n")?;
        }
        for (n, field) in spec.on.iter().enumerate() {
            self.out
                .format(format_args!("\n    hist_data->on[{n}]:\n"))?;
            self.show_field(field)?;
        }
        let Distributions {
            quantiles,
            unit,
            buckets,
        } = &spec.distributions;
        for (n, distribution) in spec.distributions() {
            self.out.format(format_args!(
                "\n  distribution of hist_data->fields[{n}]:\n\n"
            ))?;
            self.number("scale", distribution.scale().into())?;
            self.number("is_signed", usize::from(distribution.signed()))?;
            self.line(
                b"unit",
                if *unit == Unit::One {
                    b"-"
                } else {
                    unit.name()
                },
            )?;
            self.number("buckets for each entry", *buckets as usize)?;
            self.out.bytes(b"      quantiles: ")?;
            listed(self.out, b",", quantiles.iter(), |out, quantile| {
                out.format(format_args!("{quantile}"))
            })?;
            self.out.bytes(b"\n")?;
        }
        if let Some(limit) = spec.limit {
            self.out.format(format_args!("\n  limit: {limit}\n"))?;
        }
        let room = spec.room();
        if let Some([bits, bits_max]) = room.sizes {
            let (size, size_max) = (1u32 << bits, 1u32 << bits_max);
            self.out
                .format(format_args!("\n  size: {size}..{size_max}\n"))?;
        }
        if room.expire != Expire::default() {
            self.out
                .format(format_args!("\n  expire: {}\n", room.expire))?;
        }
        if room.full != Full::default() {
            self.out.format(format_args!("\n  full: {}\n", room.full))?;
        }
        Ok(())
    }

    /// Shows a field (`hist_field_debug_show()`).
    fn show_field(&mut self, field: &HistField) -> Result {
        // A value that is a reference is shown as the reference.
        if let (Role::Value { .. }, Some(var)) = (field.role, &field.reference) {
            return self.show_var_ref(var);
        }
        let (flag, more) = match (field.role, field.function) {
            (Role::Key, _) => ("HIST_FIELD_FL_KEY", ""),
            (_, Function::Counter) => ("VAL: HIST_FIELD_FL_HITCOUNT", ""),
            (Role::Value { .. }, _) if !field.value_name().1.is_empty() => {
                ("VAL: statistic", field.value_name().1)
            }
            (Role::Value { .. }, _) => ("VAL: normal u64 value", ""),
            (Role::Variable, Function::VarRef) => ("HIST_FIELD_FL_VAR", "HIST_FIELD_FL_ALIAS"),
            (Role::Variable, _) => ("HIST_FIELD_FL_VAR", ""),
        };
        let more = match field.function {
            Function::Const(_) => "HIST_FIELD_FL_CONST",
            _ => more,
        };
        self.show_flags(flag, more)?;
        if let Some(event_field) = &field.event_field {
            self.line(b"ftrace_event_field name", &event_field.name)?;
        }
        if let Some(variable) = &field.variable {
            self.line(b"var.name", &variable.name)?;
            self.number("var.idx (into tracing_map_elt.vars[])", variable.index)?;
        }
        if let Function::Const(number) = field.function {
            self.out
                .format(format_args!("      constant: {number}\n"))?;
        }
        if let Some(var) = &field.reference {
            self.number("var_ref_idx (into hist_data->var_refs[])", var.slot)?;
        }
        self.show_type(field.type_(), field.size, field.c_signed())?;
        self.out.format(format_args!(
            "      function: hist_field_{}()\n",
            field.function_name()
        ))
    }

    fn show_var_ref(&mut self, var: &VarRef) -> Result {
        self.show_flags("HIST_FIELD_FL_VAR_REF", "")?;
        self.line(b"name", &var.name)?;
        self.number("var.idx (into tracing_map_elt.vars[])", var.index)?;
        self.out.bytes(b"      var.hist_data: ")?;
        let home = var.home.as_ref().unwrap_or(self.view.hist);
        self.view.names.address(self.out, home)?;
        self.out.bytes(b"\n")?;
        self.number("var_ref_idx (into hist_data->var_refs[])", var.slot)?;
        if let Some([system, event]) = &var.qualifier {
            self.line(b"system", system)?;
            self.line(b"event_name", event)?;
        }
        self.show_type(&var.type_, var.size, var.c_signed)?;
        self.out.bytes(b"      function: hist_field_var_ref()\n")
    }

    /// Shows field variables. Returns false if one is not a field of the event: as in C, the rest
    /// of the histogram is not shown then.
    fn show_field_vars(&mut self, list: &str, vars: &[FieldVar]) -> Result<bool> {
        for (n, var) in vars.iter().enumerate() {
            self.out.format(format_args!(
                "\n    hist_data->{list}[{n}]:\n\n      {list}[{n}].var:\n"
            ))?;
            self.show_flags("HIST_FIELD_FL_VAR", "")?;
            self.line(b"var.name", &var.variable.name)?;
            self.number("var.idx (into tracing_map_elt.vars[])", var.variable.index)?;
            self.out
                .format(format_args!("\n      {list}[{n}].val:\n"))?;
            let Some(event_field) = &var.value.event_field else {
                return Ok(false);
            };
            self.line(b"ftrace_event_field name", &event_field.name)?;
            self.show_type(var.value.type_(), var.value.size, var.value.c_signed())?;
        }
        Ok(true)
    }

    fn show_actions(&mut self, spec: &Spec) -> Result {
        if !spec.actions.is_empty() {
            self.out
                .bytes(b"\n  action tracking variables (for onmax()/onchange()/onmatch()):\n")?;
        }
        for (n, action) in spec.actions.iter().enumerate() {
            if let Some(track) = &action.track {
                self.out.format(format_args!(
                    "\n    hist_data->actions[{n}].track_data.var_ref:\n"
                ))?;
                self.show_var_ref(&track.var_ref)?;
                self.out.format(format_args!(
                    "\n    hist_data->actions[{n}].track_data.track_var:\n"
                ))?;
                self.show_field(&track.var)?;
            }
            if let Handler::OnMatch { system, event } = &action.handler {
                for (blank, what, name) in [("\n", "event_system", system), ("", "event", event)] {
                    self.out.format(format_args!(
                        "{blank}    hist_data->actions[{n}].match_data.{what}: "
                    ))?;
                    self.out.bytes(name)?;
                    self.out.bytes(b"\n")?;
                }
            }
        }
        Ok(())
    }

    /// Shows flags (`hist_field_debug_show_flags()`).
    fn show_flags(&mut self, flag: &str, more: &str) -> Result {
        self.out
            .format(format_args!("      flags:\n        {flag}\n"))?;
        match more {
            "" => Ok(()),
            more => self.out.format(format_args!("        {more}\n")),
        }
    }

    fn show_type(&mut self, type_: &[u8], size: u32, signed: bool) -> Result {
        self.line(b"type", type_)?;
        self.number("size", size as usize)?;
        self.number("is_signed", usize::from(signed))
    }

    fn line(&mut self, name: &[u8], text: &[u8]) -> Result {
        self.out.bytes(b"      ")?;
        self.out.bytes(name)?;
        self.out.bytes(b": ")?;
        self.out.bytes(text)?;
        self.out.bytes(b"\n")
    }

    fn number(&mut self, name: &str, number: usize) -> Result {
        self.out.format(format_args!("      {name}: {number}\n"))
    }
}

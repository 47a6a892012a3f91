// SPDX-License-Identifier: GPL-2.0

//! The actions of a trigger.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    field::HistField,
    variable::VarRef, //
};
use crate::{
    text::copy,
    trigger::{
        self,
        Act,
        ActionHandler,
        Error,
        Trigger, //
    },
};

/// When an action runs (`enum handler_id`).
#[derive(PartialEq, Eq)]
pub enum Handler {
    /// For each hit whose references are set. Names that are not found in this event are looked up
    /// in the other one.
    OnMatch {
        /// System of the other event.
        system: KVec<u8>,
        /// Its name.
        event: KVec<u8>,
    },
    /// If a variable is larger than ever before in the entry.
    OnMax {
        /// The variable as written, with its `$`.
        var: KVec<u8>,
    },
    /// If a variable has changed in the entry.
    OnChange {
        /// The variable as written, with its `$`.
        var: KVec<u8>,
    },
}

/// The kind of an action (`enum action_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Saves fields in the entry.
    Save,
    /// Takes a snapshot of the ring buffer.
    Snapshot,
    /// Emits a synthetic event.
    Trace,
}

/// An action of a trigger (`struct action_data`).
pub struct Action {
    /// When it runs.
    pub handler: Handler,
    /// The act: save, snapshot or trace.
    pub kind: ActionKind,
    /// The name as written: of the synthetic event, or one that starts with `trace`, `save` or
    /// `snapshot`.
    pub name: KVec<u8>,
    /// The synthetic event, if the name is not the event's.
    pub synth_event: Option<KVec<u8>>,
    /// The parameters as written.
    pub params: KVec<KVec<u8>>,
    /// The variable that `onmax()` or `onchange()` compares.
    pub track: Option<Track>,
    /// The references that are the parameters of [`ActionKind::Trace`], by their slots.
    pub(in crate::hist) slots: KVec<usize>,
}

/// The variable that `onmax()` or `onchange()` tracks (`track_data`).
pub struct Track {
    /// A reference to the variable of this trigger.
    pub var_ref: Arc<VarRef>,
    /// The variable that keeps its last value.
    pub var: HistField,
}

impl Action {
    /// The action as written, with its names unresolved.
    ///
    /// # Errors
    ///
    /// The error of the parser, if the action was not understood; `ENOMEM`.
    pub(super) fn new(trigger: &Trigger, action: &trigger::Action) -> Result<Self, Error> {
        let text = |span| copy(trigger.bytes(span));
        let handler = match action.handler {
            ActionHandler::OnMatch { system, event } => Handler::OnMatch {
                system: text(system)?,
                event: text(event)?,
            },
            ActionHandler::OnMax { var } => Handler::OnMax { var: text(var)? },
            ActionHandler::OnChange { var } => Handler::OnChange { var: text(var)? },
        };
        let mut params = KVec::new();
        let (kind, name, synth_event) = match action.act.as_ref().map_err(|&error| error)? {
            Act::Save { name, .. } => (ActionKind::Save, *name, None),
            Act::Snapshot { name } => (ActionKind::Snapshot, *name, None),
            Act::Trace { name, event, .. } => {
                (ActionKind::Trace, *name, (name != event).then_some(*event))
            }
        };
        for param in action.params() {
            params.push(text(param.text)?, GFP_KERNEL)?;
        }
        Ok(Self {
            handler,
            kind,
            name: text(name)?,
            synth_event: synth_event.map(text).transpose()?,
            params,
            track: None,
            slots: KVec::new(),
        })
    }

    /// Returns whether it is the same action as `other` of another trigger (`actions_match()`).
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.handler == other.handler
            && self.kind == other.kind
            && self.target_name() == other.target_name()
            && self.params.len() == other.params.len()
            && self
                .params
                .iter()
                .zip(&other.params)
                .all(|(a, b)| a[..] == b[..])
    }

    /// The name of the synthetic event, or of the action if it uses none.
    fn target_name(&self) -> &[u8] {
        self.synth_event.as_ref().unwrap_or(&self.name)
    }
}

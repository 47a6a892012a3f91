// SPDX-License-Identifier: GPL-2.0

//! A compiled trigger.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    path::{
        Path,
        Tag, //
    },
    program::Program,
    spec::{
        target::Targets,
        Draft,
        Spec, //
    },
};
use crate::trigger::Error;

/// The code of a hit: the path that it takes, and the program.
#[repr(C)]
pub struct Code {
    /// First, since each hit needs it.
    pub(in crate::hist) path: Path,
    pub(in crate::hist) program: Program,
}

impl Code {
    /// Compiles `spec`. `targets` are the targets of its actions. Fails with `ENOMEM`, and with
    /// `EINVAL` for a value that is not a number.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    fn new(spec: &Spec, targets: &Targets) -> Result<Arc<Self>> {
        let program = Program::compile(spec, targets)?;
        let path = Path::of(&program, targets)?;
        Ok(Arc::new(Self { path, program }, GFP_KERNEL)?)
    }

    /// Which path hits take.
    pub fn tag(&self) -> Tag {
        self.path.tag()
    }

    /// Returns whether a hit calls only functions without static events: see
    /// [`Program::is_leaf`].
    pub fn is_leaf(&self) -> bool {
        self.program.is_leaf()
    }
}

/// A trigger that can be attached.
pub struct Compiled {
    /// The resolved trigger.
    pub spec: Arc<Spec>,
    /// The code of a hit.
    pub code: Arc<Code>,
    /// The targets that the code was compiled with.
    pub targets: Targets,
}

impl Compiled {
    /// Resolves the actions of a trigger, and compiles it.
    ///
    /// # Errors
    ///
    /// See [`Draft::new`].
    pub fn new(mut draft: Draft<'_>) -> Result<Self, Error> {
        let targets = draft.resolve_actions()?;
        let code = Code::new(draft.spec(), &targets)?;
        let spec = draft.into_spec()?;
        Ok(Self {
            spec,
            code,
            targets,
        })
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The hit on whose behalf a synthetic event is emitted.

use crate::event::Context;

/// The hit that emits a synthetic event: hits of that event have its stack.
pub(super) struct Origin<'a>(pub(super) &'a dyn Context);

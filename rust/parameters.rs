// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, which `rust/module.c` defines.

use super::bindings;

pub(crate) use bindings::rhist_parameters as Parameters;

/// Returns the parameters that the module was loaded with. Any context.
pub(crate) fn parameters() -> Parameters {
    // SAFETY: The kernel sets the parameters before it calls the module's init function, which is
    // the first of its Rust code to run. Nothing writes to them afterwards.
    unsafe { bindings::rhist_parameters }
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of the state, and of the screens drawn from it.

mod hostile;
mod keys;
mod sample;
mod views;

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of states and of what is drawn of them.

mod hostile;
mod keys;
mod sample;
mod views;

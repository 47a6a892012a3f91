// SPDX-License-Identifier: MIT OR Apache-2.0

//! Intervals as requests of OTLP to any receiver: the [`Export`](form::Export) of
//! [`rhist_core::otlp`], as JSON or as [`protobuf`].

mod flat;
pub(crate) mod form;
pub(crate) mod profiles;
pub(crate) mod protobuf;

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of pushing, against a receiver on this machine that does what it should not.

mod batches;
mod load;
mod pushing;
mod queue;
pub(crate) mod receiver;
mod settings;

use super::Batch;
use super::Encoding;

/// A batch that can be told from others.
fn batch(number: u64) -> Batch {
    Batch {
        encoding: Encoding::Protobuf,
        body: format!("batch {number}").into_bytes(),
    }
}

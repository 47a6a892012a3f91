// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of pushing, against a misbehaving receiver on this machine.

mod batches;
mod load;
mod profiles;
mod pushing;
mod queue;
pub(crate) mod receiver;
mod settings;

use super::Batch;
use super::Encoding;

/// A batch that is recognizable by its number.
fn batch(number: u64) -> Batch {
    Batch {
        encoding: Encoding::Protobuf,
        body: format!("batch {number}").into_bytes(),
    }
}

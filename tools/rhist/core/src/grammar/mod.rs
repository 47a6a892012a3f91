// SPDX-License-Identifier: MIT OR Apache-2.0

//! Grammar of hist triggers for the parts that people write: keys, values and filters. Each is
//! checked before anything is written to the kernel, because the messages here say more than the
//! kernel's error log.

mod expression;
mod filter;
pub mod modifier;
mod names;
pub mod token;
mod trigger;

pub use expression::check_key;
pub use expression::check_keys;
pub use expression::check_plain_value;
pub use expression::check_value;
pub use filter::check_filter;
pub use names::FILTER_NAMES;
pub use names::KEY_NAMES;
pub use trigger::Part;
pub use trigger::Trigger;

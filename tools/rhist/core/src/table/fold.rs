// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables that become one: sums over keys, over tables, and differences over time.

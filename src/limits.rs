// SPDX-License-Identifier: GPL-2.0

//! Limits that users can observe: the C implementation's, with its names and files, kept for
//! compatibility.
//!
//! Files are in `kernel/trace` unless they have a path. Limits that only rhist has, and sizes of
//! its own buffers, are where they are used.

/// Maximum number of keys of a histogram. C has 3 (`TRACING_MAP_KEYS_MAX`, `tracing_map.h`).
pub const KEYS_MAX: usize = 8;

/// Maximum number of values of a histogram, the hitcount included.
pub const VALS_MAX: usize = 9;

/// Maximum number of values of a histogram in C, the hitcount included (`TRACING_MAP_VALS_MAX`,
/// `tracing_map.h`).
pub const C_VALS_MAX: usize = 3;

/// Maximum number of quantiles that are shown of a distribution.
pub const QUANTILES_MAX: usize = 8;

/// Maximum average number of buckets of distributions per entry.
pub const BUCKETS_MAX: u32 = 1024;

/// Default of the average number of buckets of distributions per entry.
pub const BUCKETS_DEFAULT: u32 = 8;

/// log2 of the maximum number of buckets of all distributions of a histogram together.
pub const BUCKETS_BITS_MAX: u32 = 21;

/// log2 of the maximum number of buckets that they may grow to.
pub const BUCKETS_BITS_GROWN: u32 = 23;

/// Maximum number of variables of a histogram, and of references (`TRACING_MAP_VARS_MAX`,
/// `tracing_map.h`).
pub const VARS_MAX: usize = 16;

/// Maximum number of sort keys of a histogram (`TRACING_MAP_SORT_KEYS_MAX`, `tracing_map.h`).
pub const SORT_KEYS_MAX: usize = 2;

/// log2 of the entries of the smallest map (`TRACING_MAP_BITS_MIN`, `tracing_map.h`).
pub const MAP_BITS_MIN: u32 = 7;

/// log2 of the entries of a map whose size is not given (`TRACING_MAP_BITS_DEFAULT`,
/// `tracing_map.h`).
pub const MAP_BITS_DEFAULT: u32 = 11;

/// log2 of the entries of the biggest map (`TRACING_MAP_BITS_MAX`, `tracing_map.h`).
pub const MAP_BITS_MAX: u32 = 17;

/// log2 of the entries of the biggest map that has grown (`size=A..B`).
pub const MAP_BITS_GROWN: u32 = 20;

/// The shortest time without hits, in nanoseconds, after which entries expire: a second.
pub const EXPIRE_MIN_NS: u64 = 1_000_000_000;

/// The longest time without hits, in nanoseconds, after which entries expire: a year of 365 days.
pub const EXPIRE_MAX_NS: u64 = 8760 * 3600 * 1_000_000_000;

/// Maximum number of readers of the intervals of a histogram.
pub const INTERVAL_READERS_MAX: usize = 32;

/// Maximum number of actions of a trigger (`HIST_ACTIONS_MAX`, `trace_events_hist.c`).
pub const ACTIONS_MAX: usize = 8;

/// Maximum number of parameters of an action (`SYNTH_FIELDS_MAX`, `trace_synth.h`).
pub const PARAMS_MAX: usize = 64;

/// Maximum number of operators of an expression, binary and unary together (`n_subexprs` in
/// `parse_expr()`, `trace_events_hist.c`).
pub const OPERATORS_MAX: usize = 3;

/// Maximum length of a chain of histograms, each of which refers to the next. C does not limit it.
/// Dropping the first may drop all of them, recursively, on the kernel's stack.
pub const CHAIN_MAX: usize = 16;

/// Bytes of a string, with its NUL, in a key, a variable or a filter (`MAX_FILTER_STR_VAL`,
/// `include/linux/trace_events.h`).
pub const STRING_MAX: u32 = 256;

/// Return addresses of a stored stack (`HIST_STACKTRACE_DEPTH`, `trace.h`).
pub const STACK_DEPTH: usize = 31;

/// Bytes of a stored stack (`HIST_STACKTRACE_SIZE`, `trace.h`).
pub const STACK_SIZE: u32 = STACK_DEPTH as u32 * 8;

/// Maximum number of words of a stored stack of a program.
pub const USER_STACK_MAX: usize = 127;

/// Each key takes a multiple of this many bytes (`create_key_field()`, `trace_events_hist.c`).
pub const KEY_ALIGN: u32 = 8;

/// Bytes of all keys together, each padded (`HIST_KEY_SIZE_MAX`, `trace_events_hist.c`).
pub const KEY_SIZE_MAX: u32 = STRING_MAX + STACK_SIZE;

/// Words of a string or stack in a variable or in a field of a synthetic event (`STR_VAR_LEN_MAX`,
/// `trace_synth.h`).
pub const WIDE_WORDS: usize = STRING_MAX as usize / size_of::<u64>();

/// Bytes of a task's name with its NUL (`TASK_COMM_LEN`, `include/linux/sched.h`; `rust/task.c`
/// compares it).
pub const COMM_LEN: usize = 16;

/// Control groups whose paths a histogram keeps.
pub const GROUPS_MAX: u32 = 4096;

/// Bytes of the path of a control group that is shown, with its NUL (`PATH_MAX`,
/// `include/uapi/linux/limits.h`).
pub const PATH_MAX: usize = 4096;

/// Bytes of a string behind a pointer that a filter compares, with its NUL (`USTRING_BUF_SIZE`,
/// `trace_events_filter.c`).
pub const POINTED_MAX: usize = 1024;

/// Characters of a number in a filter (`num_buf` in `parse_pred()`, `trace_events_filter.c`).
pub const FILTER_NUMBER_MAX: usize = 23;

/// Entries of an error log (`TRACING_LOG_ERRS_MAX`, `trace.c`).
pub const LOG_ENTRIES_MAX: usize = 8;

/// Characters of the location of a logged error (`TRACING_LOG_LOC_MAX`, which counts the NUL,
/// `trace.c`).
pub const LOG_LOCATION_MAX: usize = 127;

/// User events, unless the sysctl says otherwise (`max_user_events`, `trace_events_user.c`).
pub const USER_EVENTS_MAX: u32 = 32768;

/// Bytes of the description of a user event, with its NUL (`MAX_EVENT_DESC`,
/// `trace_events_user.c`).
pub const USER_DESCRIPTION_MAX: isize = 512;

/// Elements of an array in a user event (`MAX_FIELD_ARRAY_SIZE`, `trace_events_user.c`).
pub const USER_ARRAY_MAX: u32 = 1024;

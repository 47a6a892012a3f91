// SPDX-License-Identifier: GPL-2.0

//! Fields of a trace event's record, as the kernel describes them.

use crate::rust::bindings;
use core::ffi::CStr;

/// A field of an event's record, as the kernel describes it.
pub(crate) struct KernelField<'a> {
    pub(crate) name: &'a CStr,
    pub(crate) type_: &'a CStr,
    /// Offset in the record, in bytes.
    pub(crate) offset: u32,
    /// Size in bytes; 4 for a dynamic field, for the offset and length of its data.
    pub(crate) size: u32,
    pub(crate) signed: bool,
    /// One of `FILTER_*`.
    pub(crate) filter_type: u32,
}

/// The common fields at the beginning of every record (`struct trace_entry`). The kernel's own list
/// of them (`trace_define_common_fields()`) is not exported.
pub(crate) const COMMON_FIELDS: [KernelField<'static>; 4] = [
    common(c"common_type", c"unsigned short", 0, 2, false),
    common(c"common_flags", c"unsigned char", 2, 1, false),
    common(c"common_preempt_count", c"unsigned char", 3, 1, false),
    common(c"common_pid", c"int", 4, 4, true),
];

const _: () = {
    use core::mem::offset_of;
    use core::mem::size_of;
    assert!(offset_of!(bindings::trace_entry, type_) == 0);
    assert!(offset_of!(bindings::trace_entry, flags) == 2);
    assert!(offset_of!(bindings::trace_entry, preempt_count) == 3);
    assert!(offset_of!(bindings::trace_entry, pid) == 4);
    assert!(size_of::<bindings::trace_entry>() == 8);
};

const fn common(
    name: &'static CStr,
    type_: &'static CStr,
    offset: u32,
    size: u32,
    signed: bool,
) -> KernelField<'static> {
    KernelField {
        name,
        type_,
        offset,
        size,
        signed,
        filter_type: bindings::FILTER_OTHER,
    }
}

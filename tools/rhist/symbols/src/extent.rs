// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where a function is in the file, and which of several symbols for a place names it.

use crate::limits::MOST_COMPARED;
use crate::name::without_version;
use crate::names::Names;
use std::cmp::Reverse;

/// Binding of a symbol; a later one is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    Local,
    Weak,
    Global,
}

/// Where the name of an extent comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A symbol for a function.
    Function,
    /// A symbol without a type, which counts where no function is.
    Label,
    /// An entry of the procedure linkage table, which counts where no function is.
    Plt,
}

/// The part of the file that a symbol names.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// Offset in the file.
    pub(crate) start: u64,
    /// Of a symbol without a size: the end of its section in the file.
    pub(crate) end: u64,
    /// Where it begins in [`Names`].
    pub(crate) name: u32,
    pub(crate) binding: Binding,
    pub(crate) kind: Kind,
    pub(crate) has_size: bool,
}

impl Extent {
    fn is_function(&self) -> bool {
        self.kind == Kind::Function
    }
}

/// Decides which symbols name places, and where symbols without a size end. Returns extents by
/// start: the last one that a place is in names it.
///
/// So the function that begins last is preferred; of several that begin at the same place, the
/// global one over a weak one, and that over a local one; then the one with a size; then the
/// shorter one. Of names for the same extent, the one with fewer leading underscores is preferred,
/// as the C standard reserves these for names that programs do not use (7.1.3), then the first by
/// its bytes.
pub(crate) fn resolve(mut extents: Vec<Extent>, names: &Names) -> Vec<Extent> {
    let order = |extent: &Extent| (extent.start, extent.binding, extent.has_size, Reverse(extent.end));
    extents.sort_by_key(order);
    without_labels_in_functions(&mut extents);
    end_those_without_size(&mut extents);
    extents.sort_by_key(order);
    // Keeps the better one of each two. In this order, names are compared as often as extents are
    // there, also if a hostile file has all at the same place.
    extents.dedup_by(|later, kept| {
        let is_same = order(later) == order(kept);
        if is_same && rank(names, later) < rank(names, kept) {
            std::mem::swap(later, kept);
        }
        is_same
    });
    extents
}

/// Ranks names: the least one is preferred.
fn rank<'a>(names: &'a Names, extent: &Extent) -> (usize, &'a [u8], u32) {
    let name = without_version(names.within(extent.name, MOST_COMPARED));
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    // A mangled name begins with an underscore that was not chosen.
    let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
    (underscores - usize::from(is_mangled), name, extent.name)
}

/// Leaves out labels and entries that begin in a function, or where one begins.
fn without_labels_in_functions(extents: &mut Vec<Extent>) {
    let mut functions_end = 0;
    let mut last_function = None;
    let mut at = 0;
    while let Some(start) = extents.get(at).map(|extent| extent.start) {
        let behind = at + extents[at..].partition_point(|extent| extent.start == start);
        for extent in extents[at..behind].iter().filter(|extent| extent.is_function()) {
            last_function = Some(start);
            if extent.has_size {
                functions_end = functions_end.max(extent.end);
            }
        }
        if start < functions_end || last_function == Some(start) {
            for extent in &mut extents[at..behind] {
                if !extent.is_function() {
                    // Empty: it is taken out below.
                    extent.end = start;
                }
            }
        }
        at = behind;
    }
    extents.retain(|extent| extent.start < extent.end);
}

/// A symbol without a size ends where the next one begins; within one that has a size, also where
/// that ends; and at the end of its section.
fn end_those_without_size(extents: &mut [Extent]) {
    let mut sized_end = 0;
    let mut at = 0;
    while let Some(start) = extents.get(at).map(|extent| extent.start) {
        let behind = at + extents[at..].partition_point(|extent| extent.start == start);
        let next = extents.get(behind).map_or(u64::MAX, |extent| extent.start);
        for extent in extents[at..behind].iter().filter(|extent| extent.has_size) {
            sized_end = sized_end.max(extent.end);
        }
        for extent in extents[at..behind].iter_mut().filter(|extent| !extent.has_size) {
            extent.end = extent.end.min(next);
            if start < sized_end {
                extent.end = extent.end.min(sized_end);
            }
        }
        at = behind;
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The program of a filter: predicates in order of evaluation, and the branches between them.

use kernel::prelude::*;

use super::predicate::Predicate;

/// One predicate and the entry to go on with, which is always a later one (`struct prog_entry`).
/// The index after the last entry stands for true, the one after that for false.
struct ProgEntry {
    predicate: Predicate,
    if_true: usize,
    if_false: usize,
}

/// A compiled filter.
pub(super) struct FilterProgram {
    entries: KVec<ProgEntry>,
}

impl FilterProgram {
    pub(super) fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        self.entries.iter().map(|entry| &entry.predicate)
    }

    /// The predicate, if it is the only one, and its result is the result of the program.
    pub(super) fn only_plain(&self) -> Option<&Predicate> {
        match self.entries[..] {
            [ProgEntry {
                ref predicate,
                if_true: 1,
                if_false: 2,
            }] => Some(predicate),
            _ => None,
        }
    }

    /// Runs the program, with `holds` to evaluate a predicate.
    #[inline]
    pub(super) fn run(&self, mut holds: impl FnMut(&Predicate) -> bool) -> bool {
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            at = match holds(&entry.predicate) {
                true => entry.if_true,
                false => entry.if_false,
            };
        }
        at == self.entries.len()
    }
}

/// A predicate whose branches are not known yet.
struct DraftEntry {
    predicate: Predicate,
    /// An odd number of `!` precedes the predicate.
    invert: bool,
    /// The result, before the inversion, with which the branch is taken. With the other result, the
    /// next entry follows (`when_to_branch`).
    jump_if: bool,
    branch: Branch,
}

/// Where a draft branches to.
#[derive(Clone, Copy)]
enum Branch {
    /// Unknown, because the operator after the predicate is incomplete. Holds the previous
    /// predicate of this kind, if any.
    Pending(Option<usize>),
    /// To where the program goes on after a later predicate.
    After(usize),
}

/// Builds a program while predicates are parsed.
///
/// When an operator is complete, the predicate before it gets its branch: behind the last predicate
/// of the operator's right side (`update_preds()`). Predicates without a branch are chained through
/// [`Branch::Pending`], the latest first.
pub(super) struct ProgramBuilder(KVec<DraftEntry>);

impl ProgramBuilder {
    pub(super) fn with_capacity(capacity: usize) -> Result<Self> {
        Ok(Self(KVec::with_capacity(capacity, GFP_KERNEL)?))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, predicate: Predicate, invert: bool) -> Result {
        let draft = DraftEntry {
            predicate,
            invert,
            jump_if: false,
            branch: Branch::Pending(self.len().checked_sub(1)),
        };
        Ok(self.0.push(draft, GFP_KERNEL)?)
    }

    /// Completes an operator whose left operand is the latest pending predicate and whose right
    /// operand is the last one. If the left one is `jump_if`, the right one is skipped.
    pub(super) fn decide(&mut self, jump_if: bool) -> Result {
        let last = self.len().checked_sub(1).ok_or(EINVAL)?;
        let Some(Branch::Pending(Some(left))) = self.0.get(last).map(|draft| draft.branch) else {
            return Err(EINVAL);
        };
        let draft = self.0.get_mut(left).ok_or(EINVAL)?;
        let waiting = draft.branch;
        draft.jump_if = jump_if;
        draft.branch = Branch::After(last);
        self.0.get_mut(last).ok_or(EINVAL)?.branch = waiting;
        Ok(())
    }

    /// Makes the program. A branch to a branch is replaced by one.
    pub(super) fn finish(mut self) -> Result<FilterProgram> {
        let last = self.len().checked_sub(1).ok_or(EINVAL)?;
        let draft = self.0.get_mut(last).ok_or(EINVAL)?;
        draft.jump_if = false;
        draft.branch = Branch::After(last + 1);
        for at in (0..last).rev() {
            let (jump_if, target) = self.way(at)?;
            let (then_if, then) = self.way(target)?;
            if jump_if == then_if {
                self.0.get_mut(at).ok_or(EINVAL)?.branch = Branch::After(then);
            }
        }
        let mut entries = KVec::with_capacity(self.len(), GFP_KERNEL)?;
        for (at, draft) in self.0.into_iter().enumerate() {
            let Branch::After(target) = draft.branch else {
                return Err(EINVAL);
            };
            if target <= at {
                return Err(EINVAL);
            }
            let (jump, next) = (target + 1, at + 1);
            let (if_true, if_false) = match draft.jump_if != draft.invert {
                true => (jump, next),
                false => (next, jump),
            };
            let entry = ProgEntry {
                predicate: draft.predicate,
                if_true,
                if_false,
            };
            entries.push(entry, GFP_KERNEL)?;
        }
        Ok(FilterProgram { entries })
    }

    fn way(&self, at: usize) -> Result<(bool, usize)> {
        match self.0.get(at) {
            Some(&DraftEntry {
                jump_if,
                branch: Branch::After(target),
                ..
            }) => Ok((jump_if, target)),
            _ => Err(EINVAL),
        }
    }
}

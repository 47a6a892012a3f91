// SPDX-License-Identifier: GPL-2.0

//! Exercise of triggers: text to tree, a walk of the tree, and back to text.

use kernel::prelude::KVec;
use kernel::prelude::ENOMEM;
use rhist::trigger::*;

use super::print::print;
use super::shape::shape;
use super::walk::walk;

fn printed(trigger: &Trigger) -> Vec<u8> {
    let mut out = KVec::new();
    print(trigger, &mut out).unwrap();
    out.to_vec()
}

/// Checks that a tree and the tree of its print are the same.
fn survives_print(trigger: &Trigger) {
    let print = printed(trigger);
    let show = String::from_utf8_lossy(&print).into_owned();
    match Trigger::parse(&print) {
        Ok(again) => {
            assert_eq!(shape(trigger), shape(&again), "{show}");
            assert_eq!(print, printed(&again), "{show}");
        }
        Err(error) => panic!("{show}: {error:?}"),
    }
}

/// Exercises a command: any text is accepted or refused without a panic, and printing loses
/// nothing.
pub(crate) fn exercise(written: &[u8]) {
    let command = Command::parse(written);
    let text = command.text().unwrap();
    let Ok(params) = command.hist() else { return };
    let (log, result) = walk(params);
    for error in &log {
        assert!(error.caret <= text.len());
        assert!(error.text.is_some());
    }
    assert!(!matches!(&result, Err(error) if error.errno == ENOMEM));
    if let Ok(trigger) = Trigger::parse(params) {
        assert_eq!(trigger.command(), &text[..]);
        survives_print(&trigger);
    }
}

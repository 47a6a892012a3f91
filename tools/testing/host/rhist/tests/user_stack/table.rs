// SPDX-License-Identifier: GPL-2.0

//! Rules as they are written to the module, made from lists.

use rhist::user_stack::{Fault, Machine, Rule, Rules, Upload};

/// Rules and rows, not necessarily valid ones.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) machine: Machine,
    pub(crate) rules: Vec<Rule>,
    pub(crate) first: u32,
    /// For each page its rows: the offset in the page, and the index of the rule.
    pub(crate) pages: Vec<Vec<(u16, u16)>>,
}

impl Table {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let rows: usize = self.pages.iter().map(Vec::len).sum();
        let mut words = vec![
            u32::from_le_bytes(*b"RUR1"),
            self.machine as u32 | (self.rules.len() as u32) << 16,
            rows as u32,
            self.first,
            self.pages.len() as u32,
            0,
        ];
        for rule in &self.rules {
            words.push(rule.kind as u32 | u32::from(rule.fp as u16) << 16);
            words.push((rule.ra as u16).into());
            words.push(rule.cfa as u32);
        }
        let mut begin = 0;
        for page in &self.pages {
            words.push(begin);
            begin += page.len() as u32;
        }
        for (offset, rule) in self.pages.iter().flatten() {
            words.push(u32::from(*offset) | u32::from(*rule) << 16);
        }
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    pub(crate) fn upload(&self) -> Result<Rules, Fault> {
        upload(self.machine, &self.to_bytes(), 1 << 20)
    }
}

/// Writes bytes in pieces of this size.
pub(crate) fn upload(machine: Machine, bytes: &[u8], piece: usize) -> Result<Rules, Fault> {
    let mut upload = Upload::new(machine);
    for piece in bytes.chunks(piece) {
        upload.write(piece)?;
    }
    upload.finish(|| ())
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the bytes of a table, and checks all that the module relies on.

use rhist_unwind::Rule;
use rhist_unwind::Rules;
use std::collections::HashSet;

/// A table as it was read.
pub struct Table {
    first_page: u64,
    pages: Vec<usize>,
    rules: Vec<Rule>,
    rows: Vec<(u16, u16)>,
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (&bytes, rest) = self.0.split_first_chunk().ok_or("too short")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }
}

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

fn rule(input: &mut Input<'_>, is_x86: bool) -> Result<Rule, String> {
    let kind = input.u16()?;
    let (fp, ra) = (input.u16()? as i16, input.u16()? as i16);
    let zero = input.u16()?;
    let cfa = input.u32()? as i32;
    let text = || format!("rule {kind} {fp} {ra} {zero} {cfa}");
    let frame = fp <= 0
        && if is_x86 {
            ra == -1 || ra == 0 && kind == 2
        } else {
            ra <= 0
        };
    ensure(zero == 0, text)?;
    let (rule, is_right) = match kind {
        0 => (Rule::None, (fp, ra, cfa) == (0, 0, 0)),
        7 => (Rule::Other, (fp, ra, cfa) == (0, 0, 0)),
        1 => (Rule::End, (fp, ra, cfa) == (0, 0, 0)),
        2 => (Rule::Sp { cfa, fp, ra }, frame),
        3 => (Rule::Fp { cfa, fp, ra }, frame),
        4 => (Rule::Deref { cfa, ra }, frame && fp == 0),
        5 => (
            Rule::Plt {
                from: cfa as u8,
                fp,
                ra,
            },
            frame && (1..16).contains(&cfa) && is_x86,
        ),
        8 => (Rule::DerefSp { cfa, fp, ra }, frame && cfa >= 0),
        9 => (Rule::Frame, (fp, ra, cfa) == (0, 0, 0)),
        6 => (Rule::Sigreturn, (fp, ra, cfa) == (0, 0, 0)),
        _ => return Err(text()),
    };
    ensure(is_right, text)?;
    Ok(rule)
}

impl Table {
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut input = Input(bytes);
        ensure(input.take()? == *b"RUR1", || "magic".into())?;
        let machine = input.u16()?;
        ensure(matches!(machine, 62 | 183), || format!("machine {machine}"))?;
        let rule_count = input.u16()?;
        let row_count = input.u32()?;
        let first_page = u64::from(input.u32()?);
        let page_count = input.u32()?;
        ensure(input.u32()? == 0, || "reserved".into())?;
        ensure(
            rule_count >= 1 && row_count <= 4_194_304 && page_count <= 65_536,
            || format!("{rule_count} rules, {row_count} rows, {page_count} pages"),
        )?;
        ensure(first_page + u64::from(page_count) <= 1 << 24, || "page".into())?;
        let rules = (0..rule_count)
            .map(|_| rule(&mut input, machine == 62))
            .collect::<Result<Vec<Rule>, String>>()?;
        ensure(matches!(rules[0], Rule::None | Rule::Frame), || "rule 0".into())?;
        let distinct: HashSet<&Rule> = rules.iter().collect();
        ensure(distinct.len() == rules.len(), || "a rule twice".into())?;
        let pages = (0..page_count)
            .map(|_| Ok(input.u32()? as usize))
            .collect::<Result<Vec<usize>, String>>()?;
        let rows = (0..row_count)
            .map(|_| Ok((input.u16()?, input.u16()?)))
            .collect::<Result<Vec<_>, String>>()?;
        ensure(input.0.is_empty(), || "too long".into())?;
        let table = Self {
            first_page,
            pages,
            rules,
            rows,
        };
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.pages.first().is_none_or(|&row| row == 0), || "first page".into())?;
        ensure(self.pages.is_empty() == self.rows.is_empty(), || {
            "rows without pages".into()
        })?;
        let mut seen = 0;
        for page in 0..self.pages.len() {
            let end = self.end(page);
            let rows = self
                .rows
                .get(self.pages[page]..end)
                .ok_or_else(|| format!("page {page}"))?;
            seen += rows.len();
            ensure(rows.first().is_none_or(|row| row.0 == 0), || {
                format!("begin of page {page}")
            })?;
            ensure(rows.is_sorted_by(|a, b| a.0 < b.0), || format!("order of page {page}"))?;
            ensure(rows.windows(2).all(|pair| pair[0].1 != pair[1].1), || {
                format!("neighbours of page {page}")
            })?;
            ensure(rows.iter().all(|row| usize::from(row.1) < self.rules.len()), || {
                format!("rules of page {page}")
            })?;
        }
        ensure(seen == self.rows.len(), || "rows that no page has".into())
    }

    fn end(&self, page: usize) -> usize {
        self.pages.get(page + 1).copied().unwrap_or(self.rows.len())
    }

    /// The rule at an offset in the file.
    pub fn rule(&self, offset: u64) -> Rule {
        let Some(page) = (offset >> 16).checked_sub(self.first_page) else {
            return self.rules[0];
        };
        let page = page as usize;
        let Some(&first) = self.pages.get(page) else {
            return self.rules[0];
        };
        let rows = &self.rows[first..self.end(page)];
        let behind = rows.partition_point(|row| row.0 <= offset as u16);
        rows[..behind]
            .last()
            .map_or(self.rules[0], |row| self.rules[usize::from(row.1)])
    }

    /// Fails unless this is the same table.
    pub fn assert_equal(&self, rules: &Rules) {
        assert_eq!(self.rules, rules.distinct());
        assert_eq!(self.rows.len(), rules.row_count());
        for (index, (offset, rule)) in rules.rows().enumerate() {
            assert_eq!(self.rows[index].0, offset as u16);
            assert_eq!(self.rule(offset), rule);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! CPU masks: `CPUS{…}` in a filter, and bitmaps in records.

use core::iter;

use kernel::prelude::*;

use crate::text::is_space;

const WORD_BITS: usize = usize::BITS as usize;

/// One word of a CPU mask; bit 0 is the lowest CPU.
#[derive(Clone, Copy, Default)]
struct CpuWord {
    /// CPUs in the mask.
    set: usize,
    /// CPUs below `nr_cpu_ids`.
    all: usize,
}

/// A CPU mask (`struct cpumask`).
pub(super) struct CpuSet {
    words: KVec<CpuWord>,
    /// `nr_cpu_ids`.
    cpus: usize,
}

impl CpuSet {
    fn empty(cpus: usize) -> Result<Self> {
        let words = KVec::from_elem(CpuWord::default(), cpus.div_ceil(WORD_BITS), GFP_KERNEL)?;
        let mut set = Self { words, cpus };
        set.add(0, cpus);
        for word in &mut set.words {
            *word = CpuWord {
                set: 0,
                all: word.set,
            };
        }
        Ok(set)
    }

    /// A mask of all CPUs. Fails with `ENOMEM`.
    pub(super) fn all(cpus: usize) -> Result<Self> {
        let mut set = Self::empty(cpus)?;
        set.add(0, cpus);
        Ok(set)
    }

    /// Parses a list such as `0-3,8-15:1/2` (`bitmap_parselist()` in `lib/bitmap-str.c`): numbers
    /// and ranges between commas and blanks up to the end or a newline; `N` is the last CPU, `all`
    /// all of them, `:used/group` takes the first `used` of each `group` of the range.
    ///
    /// # Errors
    ///
    /// `EINVAL` for invalid text and for CPUs from `nr_cpu_ids` on, `ENOMEM`.
    pub(super) fn parse(list: &[u8], cpus: usize) -> Result<Self> {
        let mut set = Self::empty(cpus)?;
        let mut list = CpuListParser {
            rest: list,
            last: u32::try_from(cpus)?.checked_sub(1).ok_or(EINVAL)?,
        };
        while list.find_region() {
            let region = list.region()?;
            let (start, end) = (region.start as usize, region.end as usize);
            if start > end || region.group == 0 || region.used > region.group || end >= cpus {
                return Err(EINVAL);
            }
            for group in (start..=end).step_by(region.group as usize) {
                set.add(group, (end - group + 1).min(region.used as usize));
            }
            if region.ends_list {
                break;
            }
        }
        Ok(set)
    }

    fn add(&mut self, first: usize, count: usize) {
        for cpu in first..first + count {
            if let Some(word) = self.words.get_mut(cpu / WORD_BITS) {
                word.set |= 1 << (cpu % WORD_BITS);
            }
        }
    }

    /// The CPU, if the mask has exactly one.
    pub(super) fn single(&self) -> Option<usize> {
        let weight: u32 = self.words.iter().map(|word| word.set.count_ones()).sum();
        let mut cpus = 0..self.cpus;
        cpus.find(|&cpu| weight == 1 && self.contains(cpu))
    }

    /// Returns whether `cpu` is in the mask (`cpumask_test_cpu()`).
    pub(super) fn contains(&self, cpu: usize) -> bool {
        let word = self.words.get(cpu / WORD_BITS).copied();
        word.is_some_and(|word| word.set >> (cpu % WORD_BITS) & 1 != 0)
    }

    /// Pairs the words of the mask with the words of `bitmap`. Missing words are 0.
    fn zip<'a>(&'a self, bitmap: &'a [u8]) -> impl Iterator<Item = (&'a CpuWord, usize)> + 'a {
        let words = bitmap.chunks_exact(size_of::<usize>());
        let words = words.map(|bytes| {
            let bytes = bytes.first_chunk();
            bytes.map_or(0, |bytes| usize::from_ne_bytes(*bytes))
        });
        iter::zip(&self.words, Iterator::chain(words, iter::repeat(0)))
    }

    /// Returns whether the mask in a record equals this one (`cpumask_equal()`). Bits from
    /// `nr_cpu_ids` on are ignored.
    pub(super) fn equals(&self, bitmap: &[u8]) -> bool {
        let mut words = self.zip(bitmap);
        words.all(|(word, other)| word.set == other & word.all)
    }

    /// Returns whether the mask in a record has a CPU in common with this one
    /// (`cpumask_intersects()`).
    pub(super) fn intersects(&self, bitmap: &[u8]) -> bool {
        let mut words = self.zip(bitmap);
        words.any(|(word, other)| word.set & other != 0)
    }
}

/// One region of a list (`struct region`): the first `used` of each `group` CPUs from `start` to
/// `end`.
struct Region {
    start: u32,
    end: u32,
    used: u32,
    group: u32,
    /// Whether the region is the last one.
    ends_list: bool,
}

/// Parses a CPU list.
struct CpuListParser<'a> {
    rest: &'a [u8],
    last: u32,
}

impl CpuListParser<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn take(&mut self, byte: u8) -> Result {
        if self.peek() != byte {
            return Err(EINVAL);
        }
        self.skip(1);
        Ok(())
    }

    fn at_end_of_list(&self) -> bool {
        matches!(self.peek(), 0 | b'\n')
    }

    fn at_separator(&self) -> bool {
        is_space(self.peek()) || self.peek() == b','
    }

    fn at_end_of_region(&self) -> bool {
        self.at_separator() || self.at_end_of_list()
    }

    /// Skips separators. Returns whether another region follows.
    fn find_region(&mut self) -> bool {
        while self.at_separator() {
            self.skip(1);
        }
        !self.at_end_of_list()
    }

    fn number(&mut self) -> Result<u32> {
        if self.peek() == b'N' {
            self.skip(1);
            return Ok(self.last);
        }
        let mut number = None;
        while let digit @ b'0'..=b'9' = self.peek() {
            let tens = number.unwrap_or(0u32).checked_mul(10).ok_or(EINVAL)?;
            let ones = u32::from(digit - b'0');
            number = Some(tens.checked_add(ones).ok_or(EINVAL)?);
            self.skip(1);
        }
        number.ok_or(EINVAL)
    }

    fn region(&mut self) -> Result<Region> {
        let all = self.rest.first_chunk::<3>();
        let (start, end) = if all.is_some_and(|word| word.eq_ignore_ascii_case(b"all")) {
            self.skip(3);
            (0, self.last)
        } else {
            let start = self.number()?;
            if self.at_end_of_region() {
                (start, start)
            } else {
                self.take(b'-')?;
                (start, self.number()?)
            }
        };
        if self.at_end_of_region() {
            let all = end.checked_add(1).ok_or(EINVAL)?;
            return Ok(Region {
                start,
                end,
                used: all,
                group: all,
                ends_list: self.at_end_of_list(),
            });
        }
        self.take(b':')?;
        let used = self.number()?;
        self.take(b'/')?;
        Ok(Region {
            start,
            end,
            used,
            group: self.number()?,
            ends_list: false,
        })
    }
}

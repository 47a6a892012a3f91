// SPDX-License-Identifier: GPL-2.0

//! Whole triggers on random records, against the simplest correct model: every key of every record
//! is made anew, with numbers of 128 bits, and looked up in a sorted map.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::sample::Index;
use rhist::event::Unit;
use rhist::hist::show::sort::heapsort;

use super::events::*;
use super::exponential::{boundary, index_of};
use super::others::Worker;

/// Numbers of [`zoo`]: name, offset, bytes, whether signed.
const NUMBERS: [(&str, usize, usize, bool); 10] = [
    ("common_pid", 4, 4, true),
    ("s8", 8, 1, true),
    ("u8", 9, 1, false),
    ("s16", 10, 2, true),
    ("u16", 12, 2, false),
    ("s32", 14, 4, true),
    ("u32", 18, 4, false),
    ("s64", 22, 8, true),
    ("u64", 30, 8, false),
    ("mask", 83, 4, false),
];

/// A string is one of these, cut where its field ends.
const STRINGS: [&[u8]; 6] = [
    b"",
    b"a\0",
    b"ab\0",
    b"a\0x",
    b"abcdefghijklmnopq",
    &[b'z'; 300],
];

/// Input of a hit.
#[derive(Clone, Debug)]
struct Event {
    numbers: [u64; NUMBERS.len()],
    odd: &'static [u8],
    even: &'static [u8],
    dynamic: &'static [u8],
    relative: &'static [u8],
    comm: &'static [u8],
    cpu: usize,
}

fn cut(string: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = string[..string.len().min(len)].to_vec();
    bytes.resize(len, 0);
    bytes
}

impl Event {
    fn hit(&self, hist: &rhist::hist::Histogram) {
        let mut record = Bytes::new(ZOO_END);
        for ((_, offset, size, _), number) in NUMBERS.into_iter().zip(self.numbers) {
            const { assert!(cfg!(target_endian = "little")) };
            record = record.put(offset, &number.to_le_bytes()[..size]);
        }
        record = record
            .put(38, &cut(self.odd, 13))
            .put(51, &cut(self.even, 16));
        record = record.data_loc(67, self.dynamic).rel_loc(71, self.relative);
        let comm = cut(self.comm, 16).try_into().unwrap();
        record.hit_in(hist, self.cpu, &comm);
    }

    /// Number `n` with its sign.
    fn number(&self, n: usize) -> i128 {
        let (_, _, size, signed) = NUMBERS[n];
        let values = 1i128 << (8 * size);
        let number = i128::from(self.numbers[n]) % values;
        match signed && number >= values / 2 {
            true => number - values,
            false => number,
        }
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let number = select(
        &[
            0,
            1,
            2,
            5,
            127,
            128,
            255,
            256,
            0x7fff,
            0x8000,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            i64::MAX as u64,
            1 << 63,
            u64::MAX / 10000,
            u64::MAX - 1,
            u64::MAX,
        ][..],
    );
    let string = || select(&STRINGS[..]);
    (
        prop::array::uniform(number),
        (string(), string(), string(), string(), string()),
        0..CPUS,
    )
        .prop_map(
            |(numbers, (odd, even, dynamic, relative, comm), cpu)| Event {
                numbers,
                odd,
                even,
                dynamic,
                relative,
                comm,
                cpu,
            },
        )
}

/// A sum of products of [`NUMBERS`], the last of which may be a constant instead, or its negative.
#[derive(Clone, Debug)]
struct Sum {
    first: usize,
    rest: Vec<(char, usize)>,
    constant: Option<(char, u8)>,
    negative: bool,
}

impl Sum {
    fn text(&self) -> String {
        let mut text = NUMBERS[self.first].0.to_owned();
        for &(operator, n) in &self.rest {
            text += &format!("{operator}{}", NUMBERS[n].0);
        }
        if let Some((operator, constant)) = self.constant {
            text += &format!("{operator}{constant}");
        }
        match self.negative {
            true => format!("-({text})"),
            false => text,
        }
    }

    /// Returns whether it can be negative: a quotient cannot.
    fn is_signed(&self) -> bool {
        let mut minus = self.negative;
        let mut terms = vec![NUMBERS[self.first].3];
        let rest = self
            .rest
            .iter()
            .map(|&(operator, n)| (operator, NUMBERS[n].3));
        for (operator, signed) in rest.chain(self.constant.map(|(operator, _)| (operator, false))) {
            let last = terms.last_mut().unwrap();
            match operator {
                '*' => *last |= signed,
                '/' => *last = false,
                _ => {
                    minus |= operator == '-';
                    terms.push(signed);
                }
            }
        }
        minus || terms.contains(&true)
    }

    fn value(&self, event: &Event) -> u64 {
        let number = |n: usize| event.number(n) as u64;
        let rest = self.rest.iter().map(|&(operator, n)| (operator, number(n)));
        let constant = self
            .constant
            .map(|(operator, number)| (operator, number.into()));
        let mut terms = vec![('+', number(self.first))];
        for (operator, number) in rest.chain(constant) {
            let last = &mut terms.last_mut().unwrap().1;
            match operator {
                '*' => *last = last.wrapping_mul(number),
                '/' => *last = last.checked_div(number).unwrap_or(u64::MAX),
                _ => terms.push((operator, number)),
            }
        }
        let sum: i128 = terms
            .iter()
            .map(|&(sign, term)| match sign {
                '-' => -i128::from(term),
                _ => i128::from(term),
            })
            .sum();
        (if self.negative { -sum } else { sum }) as u64
    }
}

fn any_sum() -> impl Strategy<Value = Sum> {
    let operator = || select(&['+', '-', '*', '/'][..]);
    let operand = || 0..NUMBERS.len();
    let constant = prop::option::of((operator(), 1u8..10));
    (
        operand(),
        vec((operator(), operand()), 0..3),
        constant,
        prop::bool::weighted(0.2),
    )
        .prop_filter("is a field", |(_, rest, constant, negative)| {
            !rest.is_empty() || constant.is_some() || *negative
        })
        .prop_map(|(first, mut rest, constant, negative)| {
            if negative {
                // At most three operators, and no minus in the parentheses: it would become the
                // root.
                rest.truncate(1);
                rest.iter_mut().for_each(|it| it.0 = '*');
            }
            let constant = constant.filter(|it| !negative || it.0 != '-');
            Sum {
                first,
                rest,
                constant,
                negative,
            }
        })
}

/// A key.
#[derive(Clone, Debug)]
enum Key {
    Number(usize, Shape),
    Sum(Sum),
    Cpu,
    Odd,
    Even,
    Dynamic,
    Relative,
    Comm,
}

/// Modifiers of a number.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Plain,
    Hex,
    Log2,
    Buckets(u64),
    Exponential(u8),
}

impl Key {
    fn name(&self) -> String {
        match self {
            Key::Number(n, _) => NUMBERS[*n].0.into(),
            Key::Sum(sum) => sum.text(),
            Key::Cpu => "common_cpu".into(),
            Key::Odd => "odd".into(),
            Key::Even => "even".into(),
            Key::Dynamic => "dyn".into(),
            Key::Relative => "rel".into(),
            Key::Comm => "common_comm".into(),
        }
    }

    fn text(&self) -> String {
        self.name()
            + &match self {
                Key::Number(_, Shape::Hex) => ".hex".into(),
                Key::Number(_, Shape::Log2) => ".log2".into(),
                Key::Number(_, Shape::Buckets(width)) => format!(".buckets={width}"),
                Key::Number(_, Shape::Exponential(scale)) => format!(".log2={scale}"),
                _ => String::new(),
            }
    }

    /// Returns whether two keys of this kind would be too long.
    fn is_long(&self) -> bool {
        matches!(self, Key::Dynamic | Key::Relative | Key::Comm)
    }

    fn number(&self, event: &Event) -> Option<u64> {
        Some(match self {
            Key::Number(n, shape) => {
                let number = event.number(*n) as u64;
                match shape {
                    Shape::Plain | Shape::Hex => number,
                    Shape::Log2 => (0..64).find(|e| 1 << e >= number).unwrap_or(64),
                    Shape::Buckets(width) => number / width * width,
                    Shape::Exponential(scale) => code(event.number(*n), *scale),
                }
            }
            Key::Sum(sum) => sum.value(event),
            Key::Cpu => event.cpu as u64,
            _ => return None,
        })
    }

    /// Key in the map, which distinguishes entries.
    fn bytes(&self, event: &Event) -> Vec<u8> {
        let last_is_nul = |string: &[u8], len: usize| [cut(string, len - 1), vec![0]].concat();
        match self {
            Key::Odd => last_is_nul(&cut(event.odd, 13), 16),
            Key::Even => last_is_nul(event.even, 16),
            Key::Dynamic => last_is_nul(event.dynamic, 256),
            Key::Relative => last_is_nul(event.relative, 256),
            Key::Comm => last_is_nul(until_nul(&cut(event.comm, 16)), 16),
            _ => self.number(event).unwrap().to_ne_bytes().to_vec(),
        }
    }

    fn shown(&self, event: &Event) -> String {
        let name = self.name();
        match (self.number(event), self) {
            (Some(number), Key::Number(_, Shape::Hex)) => format!("{name}: {number:x}"),
            (Some(number), Key::Number(_, Shape::Log2)) => format!("{name}: ~ 2^{number:<2}"),
            (Some(number), Key::Number(_, Shape::Buckets(width))) => {
                format!("{name}: ~ {number}-{}", number.wrapping_add(width - 1))
            }
            (Some(_), Key::Number(n, Shape::Exponential(scale))) => {
                let (first, last) = bucket(event.number(*n), Unit::One, *scale, NUMBERS[*n].3);
                let between = if first < 0 { " - " } else { "-" };
                format!("{name}: ~ {first}{between}{last}")
            }
            (Some(number), _) => format!("{name}: {number:>10}"),
            (None, _) => {
                let bytes = self.bytes(event);
                format!(
                    "{name}: {:<50}",
                    std::str::from_utf8(until_nul(&bytes)).unwrap()
                )
            }
        }
    }

    fn compare(&self, a: &Event, b: &Event) -> Ordering {
        let signed = |n: usize| NUMBERS[n].3;
        let as_field = |number: u64, n: usize| {
            let mut field = a.clone();
            field.numbers[n] = number;
            field.number(n)
        };
        match (self, self.number(a), self.number(b)) {
            (Key::Comm, ..) => Ordering::Equal,
            (Key::Number(n, Shape::Exponential(scale)), ..) => {
                let first =
                    |event: &Event| bucket(event.number(*n), Unit::One, *scale, NUMBERS[*n].3).0;
                first(a).cmp(&first(b))
            }
            (Key::Number(n, _), Some(a), Some(b)) => as_field(a, *n).cmp(&as_field(b, *n)),
            (Key::Sum(sum), Some(a), Some(b)) if signed(sum.first) => (a as i64).cmp(&(b as i64)),
            (_, Some(a), Some(b)) => a.cmp(&b),
            _ => until_nul(&self.bytes(a)).cmp(until_nul(&self.bytes(b))),
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap()
}

fn any_key() -> impl Strategy<Value = Key> {
    let shape = prop_oneof![
        2 => Just(Shape::Plain),
        1 => Just(Shape::Hex),
        1 => Just(Shape::Log2),
        1 => select(&[1, 3, 10, 1 << 40][..]).prop_map(Shape::Buckets),
        1 => (0u8..=5).prop_map(Shape::Exponential),
    ];
    prop_oneof![
        4 => (0..NUMBERS.len(), shape).prop_map(|(n, shape)| Key::Number(n, shape)),
        2 => any_sum().prop_map(Key::Sum),
        2 => select(&[Key::Cpu, Key::Odd, Key::Even, Key::Dynamic, Key::Relative, Key::Comm][..]),
    ]
}

/// The smallest and the largest number in the bucket of `number`.
fn bucket(number: i128, unit: Unit, scale: u8, signed: bool) -> (i128, i128) {
    if number == 0 {
        return (0, 0);
    }
    let index = index_of(number.unsigned_abs() as u64, unit, scale);
    let first = i128::from(boundary(unit, scale, index)) + 1;
    let last = i128::from(boundary(unit, scale, index + 1));
    match number < 0 {
        // Limited to the range of the field.
        true => ((-last).max(i64::MIN.into()), -first),
        false if signed => (first, last.min(i64::MAX.into())),
        false => (first, last),
    }
}

/// Code stored for the bucket of `number`; entries that are equal otherwise are sorted by it.
fn code(number: i128, scale: u8) -> u64 {
    let index = |number: i128| index_of(number.unsigned_abs() as u64, Unit::One, scale);
    let code = match number {
        0 => 0x8000,
        1.. => 0x8001 + 1024 + index(number),
        _ => 0x7fff - 1024 - index(number),
    };
    code as u64
}

/// Estimate of `hist` for a quantile of these numbers, in tenths.
fn quantile(numbers: &[i128], part: u64, unit: Unit, scale: u8, signed: bool) -> i128 {
    let mut numbers = numbers.to_vec();
    numbers.sort();
    let rank = (numbers.len() as u64 * part).div_ceil(100_000);
    let (first, last) = bucket(numbers[rank as usize - 1], unit, scale, signed);
    let square = first.unsigned_abs() * last.unsigned_abs();
    let most = first.unsigned_abs().max(last.unsigned_abs());
    let tenths = match most < 100_000 {
        true => {
            // The tenth below the geometric mean or the one above, whichever has the smaller worst
            // error.
            let (small, large) = (first.abs().min(last.abs()), first.abs().max(last.abs()));
            let below = (square * 100).isqrt() as i128;
            let worst = |tenths: i128| {
                let off = |value: i128| (tenths - 10 * value).abs() as f64 / value as f64;
                off(small).max(off(large))
            };
            if worst(below + 1) < worst(below) {
                below + 1
            } else {
                below
            }
        }
        false => {
            let root = square.isqrt();
            (root + u128::from(square - root * root > root)) as i128 * 10
        }
    };
    let tenths = if first < 0 { -tenths } else { tenths };
    tenths.clamp(numbers[0] * 10, numbers[numbers.len() - 1] * 10)
}

fn tenths(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let number = number.abs();
    match number % 10 {
        0 => format!("{sign}{}", number / 10),
        tenth => format!("{sign}{}.{tenth}", number / 10),
    }
}

/// Statistic of an entry's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    Min,
    Max,
    Avg,
    Dist(u8),
}

impl Statistic {
    fn text(self) -> String {
        match self {
            Statistic::Min => ".min".into(),
            Statistic::Max => ".max".into(),
            Statistic::Avg => ".avg".into(),
            Statistic::Dist(3) => ".dist".into(),
            Statistic::Dist(scale) => format!(".dist={scale}"),
        }
    }
}

/// A value.
#[derive(Clone, Debug)]
enum Value {
    Number(usize, &'static str),
    Sum(Sum),
    /// In parentheses.
    Parens(Sum, &'static str),
    Statistic(usize, Statistic),
    ParensStatistic(Sum, Statistic),
}

impl Value {
    fn name(&self) -> String {
        match self {
            Value::Number(n, _) => NUMBERS[*n].0.into(),
            Value::Sum(sum) => sum.text(),
            Value::Statistic(n, _) => NUMBERS[*n].0.into(),
            Value::Parens(sum, _) | Value::ParensStatistic(sum, _) => format!("({})", sum.text()),
        }
    }

    fn text(&self) -> String {
        self.name()
            + &match self {
                Value::Number(_, modifier) | Value::Parens(_, modifier) => (*modifier).to_owned(),
                Value::Sum(_) => String::new(),
                Value::Statistic(_, statistic) | Value::ParensStatistic(_, statistic) => {
                    statistic.text()
                }
            }
    }

    fn statistic(&self) -> Option<Statistic> {
        match self {
            Value::Statistic(_, statistic) | Value::ParensStatistic(_, statistic) => {
                Some(*statistic)
            }
            _ => None,
        }
    }

    /// The number of an event.
    fn of(&self, event: &Event) -> u64 {
        match self {
            Value::Number(n, _) | Value::Statistic(n, _) => event.number(*n) as u64,
            Value::Sum(sum) | Value::Parens(sum, _) | Value::ParensStatistic(sum, _) => {
                sum.value(event)
            }
        }
    }

    fn is_signed(&self) -> bool {
        match self {
            Value::Number(n, _) | Value::Statistic(n, _) => NUMBERS[*n].3,
            Value::Sum(sum) | Value::Parens(sum, _) | Value::ParensStatistic(sum, _) => {
                sum.is_signed()
            }
        }
    }

    /// A number with its sign.
    fn meant(&self, number: u64) -> i128 {
        match self.is_signed() {
            true => (number as i64).into(),
            false => number.into(),
        }
    }

    /// Text that an entry or the row `other` shows for it. `all` has the sums of the entries,
    /// `rest` is the sum of `other`. C sums expressions up, and does not show them.
    fn shown(&self, whole: &Whole, numbers: &[u64], all: &[u64], rest: u64) -> String {
        let name = self.name();
        if let Some(statistic) = self.statistic() {
            return self.shown_statistic(whole, statistic, numbers);
        }
        let sum = numbers
            .iter()
            .fold(0u64, |sum, number| sum.wrapping_add(*number));
        let total = all.iter().fold(rest, |total, sum| total.wrapping_add(*sum));
        match self {
            Value::Sum(_) => String::new(),
            Value::Number(_, ".hex") | Value::Parens(_, ".hex") => format!("  {name}: {sum:>10x}"),
            Value::Number(_, ".percent") | Value::Parens(_, ".percent") => {
                match hundredths(sum, total) {
                    Some(part) => format!("  {name} (%): {:>3}.{:02}", part / 100, part % 100),
                    None => format!("  {name} (%):[ERROR]"),
                }
            }
            Value::Number(_, ".graph") | Value::Parens(_, ".graph") => {
                // The largest entry has the longest bar.
                let most = all.iter().copied().max().unwrap_or(0);
                match hundredths(sum.min(most), most) {
                    Some(part) => {
                        format!("  {name}: {:<20}", "#".repeat(part as usize * 20 / 10000))
                    }
                    None => format!("  {name}: {:>20}", "[ERROR]"),
                }
            }
            _ => format!("  {name}: {sum:>10}"),
        }
    }

    fn min(&self, numbers: &[u64]) -> i128 {
        numbers
            .iter()
            .map(|&number| self.meant(number))
            .min()
            .unwrap()
    }

    fn max(&self, numbers: &[u64]) -> i128 {
        numbers
            .iter()
            .map(|&number| self.meant(number))
            .max()
            .unwrap()
    }

    /// The average, which wraps like sums, but stays within the extremes if they are shown, too.
    fn avg(&self, whole: &Whole, numbers: &[u64]) -> i128 {
        let sum = numbers
            .iter()
            .fold(0u64, |sum, number| sum.wrapping_add(*number));
        let avg = self.meant(sum) / numbers.len() as i128;
        let has = |wanted| {
            let mut vals = whole
                .vals
                .iter()
                .filter(|other| other.name() == self.name());
            let all = matches!(self.statistic(), Some(Statistic::Dist(_)));
            all || vals.any(|other| other.statistic() == Some(wanted))
        };
        let avg = if has(Statistic::Min) {
            avg.max(self.min(numbers))
        } else {
            avg
        };
        if has(Statistic::Max) {
            avg.min(self.max(numbers))
        } else {
            avg
        }
    }

    fn shown_statistic(&self, whole: &Whole, statistic: Statistic, numbers: &[u64]) -> String {
        let name = self.name();
        let [min, max] = [self.min(numbers), self.max(numbers)];
        let avg = self.avg(whole, numbers);
        match statistic {
            Statistic::Min => format!("  {name}.min: {min:>10}"),
            Statistic::Max => format!("  {name}.max: {max:>10}"),
            Statistic::Avg => format!("  {name}.avg: {avg:>10}"),
            Statistic::Dist(scale) => {
                let meant: Vec<_> = numbers.iter().map(|&number| self.meant(number)).collect();
                let mut shown = format!(
                    "  {name}.dist:  count: {:>10}  min: {min:>10}",
                    numbers.len()
                );
                for &(text, part) in whole.quantiles() {
                    let estimate =
                        tenths(quantile(&meant, part, whole.unit, scale, self.is_signed()));
                    shown += &format!("  p{text}: {estimate:>10}");
                }
                shown + &format!("  max: {max:>10}  avg: {avg:>10}")
            }
        }
    }
}

/// C's percentage: exact for parts that can be multiplied by 10000, otherwise of the total without
/// its last four digits; an error if it does not fit into 32 bits, or has all of them set.
fn hundredths(part: u64, whole: u64) -> Option<u32> {
    let (part, whole) = match part {
        0 => return Some(0),
        _ if part < u64::MAX / 10000 => (part * 10000, whole),
        _ => (part, whole / 10000),
    };
    let hundredths = part.checked_div(whole)?;
    u32::try_from(hundredths).ok().filter(|&it| it < u32::MAX)
}

fn any_value() -> impl Strategy<Value = Value> {
    let modifier = select(&["", ".hex", ".percent", ".graph"][..]);
    let modifier_again = modifier.clone();
    let statistic = || {
        prop_oneof![
            1 => Just(Statistic::Min),
            1 => Just(Statistic::Max),
            1 => Just(Statistic::Avg),
            2 => (0u8..=5).prop_map(Statistic::Dist),
        ]
    };
    prop_oneof![
        3 => (0..NUMBERS.len(), modifier).prop_map(|(n, modifier)| Value::Number(n, modifier)),
        1 => any_sum().prop_map(Value::Sum),
        1 => (any_sum(), modifier_again).prop_map(|(sum, modifier)| Value::Parens(sum, modifier)),
        3 => (0..NUMBERS.len(), statistic()).prop_map(|(n, it)| Value::Statistic(n, it)),
        2 => (any_sum(), statistic()).prop_map(|(sum, it)| Value::ParensStatistic(sum, it)),
    ]
}

/// Quantiles that a trigger may show, in thousandths of a percent.
const QUANTILES: [&[(&str, u64)]; 3] = [
    &[
        ("50", 50_000),
        ("90", 90_000),
        ("99", 99_000),
        ("99.9", 99_900),
    ],
    &[("0.001", 1), ("25", 25_000), ("99.999", 99_999)],
    &[("33.3", 33_300)],
];

/// Clauses for the size: hits do not need the room of most.
const ROOMS: [&str; 6] = [
    "size=128",
    "size=128",
    "size=128..512:full(other)",
    "size=128:full(recycle)",
    EXPIRES,
    "size=128..512:expire(1s):full(recycle,other)",
];

/// The clauses with which entries are taken out.
const EXPIRES: &str = "size=128:expire(1s)";

/// Sort key of entries.
#[derive(Clone, Copy, Debug)]
enum By {
    Hitcount,
    /// A value, and which of its numbers.
    Value(usize, Of),
    Key(usize),
}

/// A number of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Sum,
    Min,
    Max,
    Avg,
    Quantile(u64),
}

impl Of {
    /// Suffixes of a value's name in `sort=`.
    const NAMES: [(&'static str, Of); 5] = [
        (".min", Of::Min),
        (".max", Of::Max),
        (".avg", Of::Avg),
        (".p50", Of::Quantile(50_000)),
        (".p99.9", Of::Quantile(99_900)),
    ];
}

/// A trigger.
#[derive(Clone, Debug)]
struct Whole {
    keys: Vec<Key>,
    vals: Vec<Value>,
    /// Sort keys: names of values and keys, and whether the largest come first.
    sort: Vec<(Index, bool)>,
    nohitcount: bool,
    /// Index in [`QUANTILES`].
    quantiles: usize,
    unit: Unit,
    limit: Option<u64>,
    /// One of [`ROOMS`].
    room: &'static str,
}

/// An entry: one event that it has counted, and the numbers of all its events by values.
type Entry<'a> = (&'a Event, Vec<Vec<u64>>);

impl Whole {
    fn has_distribution(&self) -> bool {
        let dist = |value: &Value| matches!(value.statistic(), Some(Statistic::Dist(_)));
        self.vals.iter().any(dist)
    }

    fn quantiles(&self) -> &'static [(&'static str, u64)] {
        QUANTILES[self.quantiles]
    }

    /// The names that can be sorted by.
    fn names(&self) -> Vec<String> {
        let mut names = vec!["hitcount".to_owned()];
        for value in &self.vals {
            names.push(value.name());
            let own = |of: Of| {
                matches!(
                    (value.statistic(), of),
                    (Some(Statistic::Dist(_)), _)
                        | (Some(Statistic::Min), Of::Min)
                        | (Some(Statistic::Max), Of::Max)
                        | (Some(Statistic::Avg), Of::Avg)
                )
            };
            for (text, of) in Of::NAMES {
                if own(of) {
                    names.push(value.name() + text);
                }
            }
        }
        names.extend(self.keys.iter().map(Key::name));
        names
    }

    /// Resolves a name to the first thing of that name. A statistic comes before a distribution
    /// that has it, too.
    fn by(&self, name: &str) -> By {
        if name == "hitcount" {
            return By::Hitcount;
        }
        let numbers = |n: usize| match self.vals[n].statistic() {
            None => Of::Sum,
            Some(Statistic::Min) => Of::Min,
            Some(Statistic::Max | Statistic::Dist(_)) => Of::Max,
            Some(Statistic::Avg) => Of::Avg,
        };
        let plain = self.vals.iter().position(|value| value.name() == name);
        if let Some(n) = plain {
            return By::Value(n, numbers(n));
        }
        for wanted in [false, true] {
            for (n, value) in self.vals.iter().enumerate() {
                let is_dist = matches!(value.statistic(), Some(Statistic::Dist(_)));
                let found = Of::NAMES
                    .iter()
                    .find(|(text, _)| value.name() + text == name);
                match found {
                    Some((_, of)) if is_dist == wanted && (is_dist || numbers(n) == *of) => {
                        return By::Value(n, *of);
                    }
                    _ => (),
                }
            }
        }
        By::Key(self.keys.iter().position(|key| key.name() == name).unwrap())
    }

    fn sort(&self) -> Vec<(String, By, bool)> {
        let names = self.names();
        let by = |&(index, descending): &(Index, bool)| {
            let name = names[index.index(names.len())].clone();
            let by = self.by(&name);
            (name, by, descending)
        };
        self.sort.iter().map(by).collect()
    }

    /// A number that entries are sorted by.
    fn number(&self, n: usize, of: Of, entry: &Entry<'_>) -> i128 {
        let (value, numbers) = (&self.vals[n], &entry.1[n]);
        match of {
            Of::Sum => numbers
                .iter()
                .fold(0u64, |sum, it| sum.wrapping_add(*it))
                .into(),
            Of::Min => value.min(numbers),
            Of::Max => value.max(numbers),
            Of::Avg => value.avg(self, numbers),
            Of::Quantile(part) => {
                let Some(Statistic::Dist(scale)) = value.statistic() else {
                    panic!("no distribution");
                };
                let meant: Vec<_> = numbers.iter().map(|&number| value.meant(number)).collect();
                quantile(&meant, part, self.unit, scale, value.is_signed())
            }
        }
    }

    fn params(&self) -> String {
        let keys: Vec<_> = self.keys.iter().map(Key::text).collect();
        let mut params = format!("keys={}:{}", keys.join(","), self.room);
        if !self.vals.is_empty() {
            let vals: Vec<_> = self.vals.iter().map(Value::text).collect();
            params += &format!(":vals={}", vals.join(","));
            if self.nohitcount {
                params += ":nohitcount";
            }
        }
        let order = |descending| if descending { ".descending" } else { "" };
        let sort: Vec<_> = self
            .sort()
            .into_iter()
            .map(|(name, _, down)| name + order(down))
            .collect();
        if !sort.is_empty() {
            params += &format!(":sort={}", sort.join(","));
        }
        if self.has_distribution() {
            if self.quantiles > 0 {
                let names: Vec<_> = self.quantiles().iter().map(|(text, _)| *text).collect();
                params += &format!(":quantiles({})", names.join(","));
            }
            if self.unit != Unit::One {
                params += &format!(":unit({})", String::from_utf8_lossy(self.unit.name()));
            }
        }
        if let Some(limit) = self.limit {
            params += &format!(":limit({limit})");
        }
        params
    }

    /// Adds an event to an entry.
    fn add(&self, (_, numbers): &mut Entry<'_>, event: &Event) {
        for (numbers, value) in numbers.iter_mut().zip(&self.vals) {
            numbers.push(value.of(event));
        }
        numbers[self.vals.len()].push(1);
    }

    /// The rows of these events. Entries with the events in `gone` were taken out before.
    fn entries(&self, gone: &[&Event], events: &[&Event]) -> Vec<String> {
        let empty = |event| -> Entry<'_> { (event, vec![Vec::new(); self.vals.len() + 1]) };
        let mut others = gone.first().map(|&event| empty(event));
        let all = others.iter_mut();
        all.for_each(|others| gone.iter().for_each(|event| self.add(others, event)));
        let mut map: BTreeMap<Vec<u8>, Entry<'_>> = BTreeMap::new();
        for &event in events {
            let key = self
                .keys
                .iter()
                .map(|key| key.bytes(event))
                .collect::<Vec<_>>()
                .concat();
            self.add(map.entry(key).or_insert(empty(event)), event);
        }
        let mut entries: Vec<_> = map.into_values().collect();
        let mut by: Vec<_> = self
            .sort()
            .into_iter()
            .map(|(_, by, down)| (by, down))
            .collect();
        if by.is_empty() {
            by.push((By::Hitcount, false));
        }
        let compare = |(by, descending): (By, bool), a: &Entry<'_>, b: &Entry<'_>| {
            let order = match by {
                By::Hitcount => a.1[self.vals.len()].len().cmp(&b.1[self.vals.len()].len()),
                By::Value(n, of) => self.number(n, of, a).cmp(&self.number(n, of, b)),
                By::Key(n) => self.keys[n].compare(a.0, b.0),
            };
            if descending {
                order.reverse()
            } else {
                order
            }
        };
        heapsort(&mut entries, |a, b| compare(by[0], a, b), &|| Ok(())).unwrap();
        if let Some(&second) = by.get(1) {
            for run in entries.chunk_by_mut(|a, b| compare(by[0], a, b).is_eq()) {
                heapsort(run, |a, b| compare(second, a, b), &|| Ok(())).unwrap();
            }
        }
        let show = |keys: &str, (_, numbers): &Entry<'_>| {
            let mut shown = format!("{{ {keys} }}");
            if !self.nohitcount || self.vals.is_empty() {
                shown += &format!(" hitcount: {:>10}", numbers[self.vals.len()].len());
            }
            for (n, value) in self.vals.iter().enumerate() {
                let sum = |entry: &Entry<'_>| self.number(n, Of::Sum, entry) as u64;
                let all: Vec<_> = entries.iter().map(sum).collect();
                let rest = others.as_ref().map_or(0, sum);
                shown += &value.shown(self, &numbers[n], &all, rest);
            }
            shown
        };
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        let rows = entries.iter().take(limit).map(|entry| {
            let keys: Vec<_> = self.keys.iter().map(|key| key.shown(entry.0)).collect();
            show(&keys.join(", "), entry)
        });
        Iterator::chain(rows, others.iter().map(|others| show("other", others))).collect()
    }
}

fn any_whole() -> impl Strategy<Value = Whole> {
    let keys = vec(any_key(), 1..=8).prop_filter("too long", |keys| {
        keys.iter().filter(|key| key.is_long()).count() <= 1
    });
    let sort = vec(any::<(Index, bool)>(), 0..=2);
    let more = (
        0..QUANTILES.len(),
        select(&[Unit::One, Unit::One, Unit::Us, Unit::Ms, Unit::S][..]),
        prop::option::weighted(0.2, 1u64..5),
        select(&ROOMS[..]),
    );
    (keys, vec(any_value(), 0..=8), sort, any::<bool>(), more).prop_map(
        |(keys, vals, sort, nohitcount, (quantiles, unit, limit, room))| Whole {
            keys,
            vals,
            sort,
            nohitcount,
            quantiles,
            unit,
            limit,
            room,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn whole_triggers(
        whole in any_whole(),
        events in vec(any_event(), 1..8),
        hits in vec(any::<Index>(), 0..30),
        gone in any::<Index>(),
    ) {
        let params = whole.params();
        let hist = hist(&zoo(), &params);
        let hits: Vec<_> = hits.iter().map(|hit| hit.get(&events)).collect();
        let expires = whole.room == EXPIRES;
        let (gone, kept) = hits.split_at(if expires { gone.index(hits.len() + 1) } else { 0 });
        gone.iter().for_each(|event| event.hit(&hist));
        if expires {
            Worker::new(&hist).expire(&[]);
        }
        kept.iter().for_each(|event| event.hit(&hist));
        prop_assert_eq!(entries(&hist), whole.entries(gone, kept), "{}", params);
        let shown = line(&hist);
        let again = super::events::hist(
            &zoo(),
            shown.strip_prefix("hist:").unwrap().strip_suffix(" [active]\n").unwrap(),
        );
        prop_assert!(hist.spec().matches(again.spec()) && again.spec().matches(hist.spec()));
        prop_assert_eq!(line(&again), shown);
    }
}

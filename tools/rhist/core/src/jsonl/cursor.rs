// SPDX-License-Identifier: MIT OR Apache-2.0

//! Cursor in a line of JSON. Parses directly into the result, since an interval may have a hundred
//! thousand lines.

/// Description of a fault. Boxed twice, so that `Result` stays small.
#[derive(Debug)]
pub(super) struct Wrong(Box<Box<str>>);

pub(super) type Result<T> = std::result::Result<T, Wrong>;

impl<S: Into<Box<str>>> From<S> for Wrong {
    fn from(what: S) -> Self {
        Wrong(Box::new(what.into()))
    }
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        wrong.0.into_string()
    }
}

/// Position in a line of JSON. Methods that read a value move it past the value, or fail with a
/// description.
pub(super) struct Cursor<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of a line. Fails if it is not UTF-8.
    pub(super) fn new(line: &'a [u8]) -> Result<Self> {
        // Faster than a check of each string in the line.
        match str::from_utf8(line) {
            Ok(line) => Ok(Cursor { line, at: 0 }),
            Err(_) => Err("not JSON: not UTF-8".into()),
        }
    }

    /// Fails unless the line ends here.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the line")),
        }
    }

    /// Reads a list, each element with `element`.
    pub(super) fn list(&mut self, element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.take(b'[', "a list")?;
        self.items(b']', "`,` or `]`", element)
    }

    /// Reads an object whose members may have any names. Calls `read` for each value with its name
    /// as written.
    pub(super) fn map(&mut self, mut read: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        self.take(b'{', "an object")?;
        self.items(b'}', "`,` or `}`", |cursor| {
            let name = cursor.name()?;
            read(cursor, name)
        })
    }

    /// Reads an object. Calls `read` for each value of a member in `members`, and skips others.
    /// Names are given as `"name":`. Fastest if the members come in this order, as rhist writes
    /// them.
    pub(super) fn object<M: Copy>(
        &mut self,
        members: &[(&str, M)],
        mut read: impl FnMut(&mut Self, M) -> Result<()>,
    ) -> Result<()> {
        self.take(b'{', "an object")?;
        let mut next = 0;
        self.items(b'}', "`,` or `}`", |cursor| {
            let place = match members.get(next) {
                Some((name, _)) if cursor.rest().starts_with(name.as_bytes()) => {
                    cursor.at += name.len();
                    next
                }
                _ => {
                    let name = cursor.name()?;
                    let is_it = |(known, _): &(&str, M)| {
                        let known = known.strip_prefix('"').and_then(|known| known.strip_suffix("\":"));
                        known == Some(name)
                    };
                    members.iter().position(is_it).unwrap_or(members.len())
                }
            };
            match members.get(place) {
                Some(&(_, member)) => {
                    next = place + 1;
                    read(cursor, member)
                }
                None => cursor.value().map(drop),
            }
        })
    }

    /// Reads items separated by commas, each with `item`, up to the byte `end`.
    fn items(&mut self, end: u8, expected: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.takes(end) {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.takes(b',') {
                return self.take(end, expected);
            }
        }
    }

    /// Reads the name of a member and its colon.
    fn name(&mut self) -> Result<&'a str> {
        let name = self.string()?;
        self.take(b':', "`:`")?;
        Ok(name)
    }

    /// Reads a string. Returns the text between the quotes, still escaped.
    pub(super) fn string(&mut self) -> Result<&'a str> {
        self.take(b'"', "a string")?;
        let begin = self.at;
        loop {
            self.pass(&IN_STRING);
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                _ => return Err(self.unexpected("the end of the string")),
            }
        }
        self.at += 1;
        Ok(self.line.get(begin..self.at - 1).unwrap_or_default())
    }

    /// Reads an integer with an optional sign.
    pub(super) fn whole(&mut self) -> Result<i128> {
        let is_negative = self.takes(b'-');
        let begin = self.at;
        let magnitude = i128::from(self.unsigned()?);
        match is_negative {
            false => Ok(magnitude),
            true if magnitude <= 1 << 63 => Ok(-magnitude),
            true => Err(self.wrong("a number has more than 64 bits", begin)),
        }
    }

    /// Reads an integer without a sign.
    pub(super) fn unsigned(&mut self) -> Result<u64> {
        let first = self.peek();
        let begin = self.at;
        let mut number: u64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            let digit = u64::from(digit - b'0');
            // Up to 18 digits cannot overflow.
            number = match self.at - begin < 18 {
                true => number * 10 + digit,
                false => {
                    let sum = number.checked_mul(10).and_then(|sum| sum.checked_add(digit));
                    sum.ok_or_else(|| self.wrong("a number has more than 64 bits", begin))?
                }
            };
            self.at += 1;
        }
        let digits = self.at - begin;
        match self.byte() {
            Some(b'.' | b'e' | b'E') => Err(self.wrong("a number is not whole", begin)),
            _ if digits == 0 || (digits > 1 && first == Some(b'0')) => Err(self.unexpected("a whole number")),
            _ => Ok(number),
        }
    }

    /// Skips any value. Returns its text.
    pub(super) fn value(&mut self) -> Result<&'a str> {
        let first = self.peek();
        let begin = self.at;
        match first {
            Some(b'"') => drop(self.string()?),
            Some(b'{' | b'[') => self.nested()?,
            Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => self.pass(&IN_SCALAR),
            _ => return Err(self.unexpected("a value")),
        }
        Ok(self.line.get(begin..self.at).unwrap_or_default())
    }

    /// Skips a list or an object, looking only for its end.
    fn nested(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.byte() {
                Some(b'"') => drop(self.string()?),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => return Err(self.unexpected("`}` or `]`")),
            }
            if depth == 0 {
                return Ok(());
            }
            self.pass(&IN_NESTED);
        }
    }

    /// Skips the bytes of this set.
    fn pass(&mut self, set: &[bool; 256]) {
        let rest = self.rest();
        let is_other = |&byte: &u8| set.get(usize::from(byte)) != Some(&true);
        self.at += rest.iter().position(is_other).unwrap_or(rest.len());
    }

    /// Offset in the line, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Skips white space. Returns the next byte.
    pub(super) fn peek(&mut self) -> Option<u8> {
        // Fast path: rhist writes no white space.
        if let byte @ Some(b'!'..) = self.byte() {
            return byte;
        }
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Error at the byte `begin`.
    #[cold]
    fn wrong(&self, what: &str, begin: usize) -> Wrong {
        format!("not in the format of hist_jsonl: {what} (column {})", begin + 1).into()
    }

    /// Error: `expected` should stand here.
    #[cold]
    pub(super) fn unexpected(&self, expected: &str) -> Wrong {
        match self.line.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => self.wrong(&format!("expected {expected}, found {found:?}"), self.at),
            None => self.wrong(&format!("expected {expected}, found the end of the line"), self.at),
        }
    }

    fn rest(&self) -> &[u8] {
        self.line.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn take(&mut self, byte: u8, expected: &str) -> Result<()> {
        match self.takes(byte) {
            true => Ok(()),
            false => Err(self.unexpected(expected)),
        }
    }
}

/// Bytes that a string may contain unescaped.
const IN_STRING: [bool; 256] = {
    let mut set = [true; 256];
    let mut control = 0;
    while control < 32 {
        set[control] = false;
        control += 1;
    }
    set[b'"' as usize] = false;
    set[b'\\' as usize] = false;
    set
};

/// Bytes within a list or an object, other than the limits of strings, lists and objects.
const IN_NESTED: [bool; 256] = {
    let mut set = [true; 256];
    let mut n = 0;
    let others = b"\"{}[]";
    while n < others.len() {
        set[others[n] as usize] = false;
        n += 1;
    }
    set
};

/// Bytes of numbers and words.
const IN_SCALAR: [bool; 256] = {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        set[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    set[b'-' as usize] = true;
    set[b'+' as usize] = true;
    set[b'.' as usize] = true;
    set
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Reads any value with the methods for lists, objects, strings and numbers.
    fn read(cursor: &mut Cursor<'_>) -> Result<Value> {
        match cursor.peek() {
            Some(b'[') => {
                let mut list = Vec::new();
                cursor.list(|cursor| read(cursor).map(|value| list.push(value)))?;
                Ok(list.into())
            }
            Some(b'{') => {
                let mut object = serde_json::Map::new();
                cursor.map(|cursor, name| {
                    let name = serde_json::from_str(&format!("\"{name}\"")).unwrap();
                    object.insert(name, read(cursor)?);
                    Ok(())
                })?;
                Ok(object.into())
            }
            _ => Ok(serde_json::from_str(cursor.value()?).unwrap()),
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_is_json(value in json(), is_pretty: bool) {
            let text = match is_pretty {
                true => serde_json::to_string_pretty(&value).unwrap(),
                false => value.to_string(),
            };
            let mut cursor = Cursor::new(text.as_bytes()).unwrap();
            prop_assert_eq!(cursor.value().unwrap(), &text);
            cursor.end().unwrap();
            let mut cursor = Cursor::new(text.as_bytes()).unwrap();
            prop_assert_eq!(read(&mut cursor).unwrap(), value);
            cursor.end().unwrap();
        }

        #[test]
        fn numbers_are_those_of_64_bits(number in any::<i128>(), shift in 0..128u32) {
            let number = number >> shift;
            let text = number.to_string();
            let whole = Cursor::new(text.as_bytes()).unwrap().whole().ok();
            let fits = i64::try_from(number).is_ok() || u64::try_from(number).is_ok();
            prop_assert_eq!(whole, fits.then_some(number));
            let unsigned = Cursor::new(text.as_bytes()).unwrap().unsigned().ok();
            prop_assert_eq!(unsigned, u64::try_from(number).ok());
        }

        #[test]
        fn it_ends_whatever_the_line_is(line in r#"([\[\]{},:"\\ ]|-?[0-9]{1,3}|null|é|[a-z]){0,30}"#) {
            let mut cursor = Cursor::new(line.as_bytes()).unwrap();
            let passed = cursor.value().map(str::len).unwrap_or_default();
            prop_assert!(passed <= line.len());
            // Invalid JSON may be accepted, but never read beyond its end.
            let _ = Cursor::new(line.as_bytes()).unwrap().list(|cursor| cursor.value().map(drop));
            let _ = Cursor::new(line.as_bytes()).unwrap().map(|cursor, _| cursor.whole().map(drop));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The fields of a user event: parsing, comparing and printing their declarations.

use super::payload::{
    Locator,
    HEADER, //
};
use crate::{
    limits::USER_ARRAY_MAX,
    text::is_space, //
};
use kernel::prelude::*;

/// Maximum size of all fields of an event together, in bytes. The buffers of ftrace and perf take
/// less.
pub const MAX_SIZE: u32 = 64 << 10;

/// Prefix of the fields that every event has, such as `common_pid`. An event's own fields may not
/// have it, since a lookup finds them first, here and in the kernel (`trace_find_event_field()`).
/// Other names that every event has, such as `comm` and `cpu`, are allowed: events of the kernel
/// have fields with these names, too.
const COMMON: &[u8] = b"common_";

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct UserField<'a> {
    /// The type as it was written.
    pub type_: &'a CStr,
    /// The name in the event's format.
    pub name: &'a CStr,
    /// Offset in the record, in bytes.
    pub offset: u32,
    /// Size in bytes; 4 for a dynamic field, whose data is elsewhere in the record.
    pub size: u32,
}

impl UserField<'_> {
    /// Returns whether the field is shown as a signed number: its type does not begin with `u`.
    pub fn is_signed(&self) -> bool {
        !self.type_.to_bytes().starts_with(b"u")
    }

    /// The check for the payload, if this is a dynamic field (`__data_loc`, `__rel_loc`).
    fn locator(&self) -> Option<Locator> {
        let type_ = self.type_.to_bytes();
        let relative = match () {
            () if type_.starts_with(b"__data_loc ") => false,
            () if type_.starts_with(b"__rel_loc ") => true,
            () => return None,
        };
        Some(Locator {
            offset: self.offset,
            relative,
            string: contains(type_, b"char"),
        })
    }

    /// Appends the declaration of the field: `type name`, and the size of a struct.
    fn declare(&self, out: &mut KVec<u8>) -> Result {
        let type_ = self.type_.to_bytes();
        out.extend_from_slice(type_, GFP_KERNEL_ACCOUNT)?;
        out.push(b' ', GFP_KERNEL_ACCOUNT)?;
        out.extend_from_slice(self.name.to_bytes(), GFP_KERNEL_ACCOUNT)?;
        if type_.starts_with(b"struct ") {
            out.push(b' ', GFP_KERNEL_ACCOUNT)?;
            push_decimal(out, self.size)?;
        }
        Ok(())
    }

    /// The conversion specifier of the field in `print fmt`.
    fn conversion(&self) -> &'static [u8] {
        match self.type_.to_bytes() {
            b"s64" => b"%lld",
            b"s32" | b"int" | b"s16" | b"short" | b"s8" | b"char" => b"%d",
            b"u32" | b"unsigned int" | b"u16" | b"unsigned short" | b"u8" | b"unsigned char" => {
                b"%u"
            }
            other if contains(other, b"char[") => b"%s",
            _ => b"%llu",
        }
    }
}

/// The declaration of a field: type, name and size.
struct FieldDeclaration<'a>(&'a [u8], &'a [u8], u32);

impl<'a> FieldDeclaration<'a> {
    /// Parses `type name`, or `struct type name size`. `None` for an empty text or only white
    /// space.
    fn parse(text: &'a [u8]) -> Result<Option<Self>> {
        let start = text.iter().position(|&byte| !is_space(byte));
        let Some(text) = start.map(|start| &text[start..]) else {
            return Ok(None);
        };
        // C accepts these.
        if text.iter().any(is_unfit) {
            return Err(EINVAL);
        }
        // Prefixes of types that contain a space: the type ends at the first space after the
        // prefix.
        let prefix = [
            &b"unsigned "[..],
            b"struct ",
            b"__data_loc unsigned ",
            b"__data_loc ",
            b"__rel_loc unsigned ",
            b"__rel_loc ",
        ];
        let prefix = prefix.iter().find(|prefix| text.starts_with(prefix));
        let prefix = prefix.map_or(0, |prefix| prefix.len());
        let blank = text[prefix..].iter().position(|&byte| byte == b' ');
        let end = prefix + blank.ok_or(EINVAL)?;
        let (type_, rest) = (&text[..end], &text[end + 1..]);

        let mut words = rest.split(|&byte| byte == b' ');
        let (name, size) = (words.next().unwrap_or_default(), words.next());
        // The kernel accepts a field without a name, which cannot be read, and one whose name hides
        // a field that the kernel records itself.
        if name.is_empty() || name.starts_with(COMMON) || words.next().is_some() {
            return Err(EINVAL);
        }
        let size = match size {
            Some(size) if type_.starts_with(b"struct ") => decimal(size)?,
            Some(_) => return Err(EINVAL),
            None => size_of_type(type_)?,
        };
        if size == 0 || size > MAX_SIZE {
            return Err(EINVAL);
        }
        Ok(Some(Self(type_, name, size)))
    }
}

/// A field of [`UserFields`]: offsets of its type and its name in the texts; offset in the record,
/// and size.
#[derive(Debug)]
struct StoredField {
    type_: usize,
    name: usize,
    offset: u32,
    size: u32,
}

/// The fields of an event in the order of their declaration, packed without padding.
#[derive(Debug)]
pub struct UserFields {
    /// Types and names, each with a NUL at its end. In one allocation, since an event may have many
    /// short ones.
    texts: KVec<u8>,
    fields: KVec<StoredField>,
    locators: KVec<Locator>,
    /// Size of all fields together, in bytes.
    size: u32,
}

impl UserFields {
    /// Parses fields that are separated by `;`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an invalid field, one with a name that begins with `common_`, or fields that
    /// are larger than [`MAX_SIZE`] together; `ENOMEM`.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut fields = Self {
            // The NUL of each text takes the place of the separator after it; the last text has
            // none.
            texts: KVec::with_capacity(text.len() + 1, GFP_KERNEL_ACCOUNT)?,
            fields: KVec::new(),
            locators: KVec::new(),
            size: 0,
        };
        for text in text.split(|&byte| byte == b';') {
            if let Some(declaration) = FieldDeclaration::parse(text)? {
                fields.add(declaration)?;
            }
        }
        Ok(fields)
    }

    fn add(&mut self, FieldDeclaration(type_, name, size): FieldDeclaration<'_>) -> Result {
        let field = StoredField {
            type_: self.texts.len(),
            name: self.texts.len() + type_.len() + 1,
            offset: HEADER + self.size,
            size,
        };
        self.size += size;
        if self.size > MAX_SIZE {
            return Err(EINVAL);
        }
        for text in [type_, name] {
            self.texts.extend_from_slice(text, GFP_KERNEL_ACCOUNT)?;
            self.texts.push(0, GFP_KERNEL_ACCOUNT)?;
        }
        if let Some(locator) = self.field(&field).locator() {
            self.locators.push(locator, GFP_KERNEL_ACCOUNT)?;
        }
        self.fields.push(field, GFP_KERNEL_ACCOUNT)?;
        Ok(())
    }

    fn field(&self, stored: &StoredField) -> UserField<'_> {
        let text = |start| {
            let text = self.texts.get(start..).unwrap_or_default();
            CStr::from_bytes_until_nul(text).unwrap_or_default()
        };
        UserField {
            type_: text(stored.type_),
            name: text(stored.name),
            offset: stored.offset,
            size: stored.size,
        }
    }

    /// Iterates over the fields.
    pub fn iter(&self) -> impl Iterator<Item = UserField<'_>> {
        self.fields.iter().map(|stored| self.field(stored))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns whether the event has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The minimum size of a payload, in bytes.
    pub fn min_size(&self) -> usize {
        self.size as usize
    }

    /// Returns whether every payload of at least [`UserFields::min_size`] bytes is valid.
    pub fn accept_all(&self) -> bool {
        self.locators.is_empty()
    }

    /// Returns whether a payload of at least [`UserFields::min_size`] bytes is valid: each dynamic
    /// field has its data in the payload, which ends in a NUL if it is a string.
    pub fn accept(&self, payload: &[u8]) -> bool {
        self.locators.iter().all(|locator| locator.accepts(payload))
    }

    /// Formats the fields like [`normalized`] formats a text that declares them.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn normalized(&self) -> Result<KVec<u8>> {
        // Enough capacity, unless fields are structs, whose sizes are added.
        let mut out = KVec::with_capacity(self.texts.len(), GFP_KERNEL_ACCOUNT)?;
        for field in self.iter() {
            field.declare(&mut out)?;
            out.push(b';', GFP_KERNEL_ACCOUNT)?;
        }
        Ok(out)
    }

    /// Formats the line for `dynamic_events` of an event called `name`, with a NUL at the end.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn line(&self, name: &[u8]) -> Result<KVec<u8>> {
        // Enough capacity, unless fields are structs, whose sizes are added.
        let capacity = name.len() + self.texts.len() + self.len() + 1;
        let mut out = KVec::with_capacity(capacity, GFP_KERNEL_ACCOUNT)?;
        out.extend_from_slice(name, GFP_KERNEL_ACCOUNT)?;
        if !self.is_empty() {
            out.push(b' ', GFP_KERNEL_ACCOUNT)?;
        }
        self.declare(&mut out)?;
        out.push(0, GFP_KERNEL_ACCOUNT)?;
        Ok(out)
    }

    /// Appends the declarations of all fields, separated by `; `.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn declare(&self, out: &mut KVec<u8>) -> Result {
        for (index, field) in self.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"; ", GFP_KERNEL_ACCOUNT)?;
            }
            field.declare(out)?;
        }
        Ok(())
    }

    /// Formats the `print fmt` of the event, with a NUL at the end.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn print_fmt(&self) -> Result<KVec<u8>> {
        let mut out = KVec::new();
        out.push(b'"', GFP_KERNEL_ACCOUNT)?;
        for (index, field) in self.iter().enumerate() {
            if index > 0 {
                out.push(b' ', GFP_KERNEL_ACCOUNT)?;
            }
            for piece in [field.name.to_bytes(), b"=", field.conversion()] {
                out.extend_from_slice(piece, GFP_KERNEL_ACCOUNT)?;
            }
        }
        out.push(b'"', GFP_KERNEL_ACCOUNT)?;
        for field in self.iter() {
            let (before, after): (&[u8], &[u8]) = match field.locator() {
                Some(locator) if locator.string && locator.relative => (b"__get_rel_str(", b")"),
                Some(locator) if locator.string => (b"__get_str(", b")"),
                _ => (b"REC->", b""),
            };
            for piece in [&b", "[..], before, field.name.to_bytes(), after] {
                out.extend_from_slice(piece, GFP_KERNEL_ACCOUNT)?;
            }
        }
        out.push(0, GFP_KERNEL_ACCOUNT)?;
        Ok(out)
    }
}

/// Formats the declarations of fields in one way, so that texts are equal if they declare the same
/// fields: a blank between words, and a `;` behind each field. The declarations need not be valid.
/// The amount of white space between words and any white space after a `;` do not matter, but white
/// space before a `;` does.
///
/// # Errors
///
/// `ENOMEM`.
pub fn normalized(text: &[u8]) -> Result<KVec<u8>> {
    let mut out = KVec::with_capacity(text.len() + 1, GFP_KERNEL_ACCOUNT)?;
    normalize(text, |part| {
        Ok(out.extend_from_slice(part, GFP_KERNEL_ACCOUNT)?)
    })?;
    Ok(out)
}

/// Returns whether a text declares these fields, as [`normalized`] formats them. Allocates nothing,
/// so that it can be called with event_mutex held.
pub fn declares(text: &[u8], fields: &[u8]) -> bool {
    let mut rest = fields;
    let same = normalize(text, |part| {
        rest = rest.strip_prefix(part).ok_or(EINVAL)?;
        Ok(())
    });
    same.is_ok() && rest.is_empty()
}

/// Calls `emit` for each part of the output of [`normalized`], until it fails.
fn normalize(text: &[u8], mut emit: impl FnMut(&[u8]) -> Result) -> Result {
    let mut in_field = false;
    for word in DeclTokens(text) {
        if in_field {
            emit(b" ")?;
        }
        emit(word)?;
        in_field = !word.ends_with(b";");
    }
    match in_field {
        true => emit(b";"),
        false => Ok(()),
    }
}

/// Iterator over words. A word ends before white space, or after a `;`.
struct DeclTokens<'a>(&'a [u8]);

impl<'a> Iterator for DeclTokens<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|&byte| !is_space(byte))?;
        let text = &self.0[start..];
        let end = text
            .iter()
            .enumerate()
            .find_map(|(index, &byte)| match byte {
                b';' => Some(index + 1),
                _ if is_space(byte) => Some(index),
                _ => None,
            });
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.0 = rest;
        Some(word)
    }
}

/// Returns whether a character has a meaning where fields are listed: a control character may end
/// the line, `#` begins a comment in `dynamic_events`, and the others are part of the syntax of
/// `print fmt`.
fn is_unfit(byte: &u8) -> bool {
    byte.is_ascii_control() || matches!(byte, b'#' | b'"' | b'%' | b'\\')
}

/// The size of a type other than a struct. `long` is not supported: its size may differ between a
/// program and the kernel.
fn size_of_type(type_: &[u8]) -> Result<u32> {
    Ok(match type_ {
        b"s64" | b"u64" => 8,
        b"s32" | b"u32" | b"int" | b"unsigned int" => 4,
        b"s16" | b"u16" | b"short" | b"unsigned short" => 2,
        b"s8" | b"u8" | b"char" | b"unsigned char" => 1,
        _ if type_.starts_with(b"__data_loc ") || type_.starts_with(b"__rel_loc ") => 4,
        _ => {
            let array = type_.strip_prefix(b"unsigned ").unwrap_or(type_);
            array_size(array.strip_prefix(b"char[").ok_or(EINVAL)?)?
        }
    })
}

/// Parses the array size before a `]`. As in the kernel, the text after the `]` is ignored, and
/// the whole text must be shorter than 8 bytes.
fn array_size(text: &[u8]) -> Result<u32> {
    let end = text.iter().position(|&byte| byte == b']');
    match end {
        Some(end) if text.len() < 8 => {
            let size = crate::trigger::number(&text[..end])?;
            let size = u32::try_from(size).map_err(|_| EINVAL)?;
            (size <= USER_ARRAY_MAX).then_some(size).ok_or(EINVAL)
        }
        _ => Err(EINVAL),
    }
}

/// Parses a decimal number as `kstrtou32()` does, but without a newline at the end.
fn decimal(text: &[u8]) -> Result<u32> {
    let text = text.strip_prefix(b"+").unwrap_or(text);
    if text.is_empty() {
        return Err(EINVAL);
    }
    text.iter().try_fold(0u32, |value, &byte| {
        let digit = char::from(byte).to_digit(10).ok_or(EINVAL)?;
        let value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(digit));
        value.ok_or(EINVAL)
    })
}

fn contains(text: &[u8], piece: &[u8]) -> bool {
    text.windows(piece.len()).any(|window| window == piece)
}

fn push_decimal(out: &mut KVec<u8>, mut number: u32) -> Result {
    let mut digits = [0; 10];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    Ok(out.extend_from_slice(&digits[start..], GFP_KERNEL_ACCOUNT)?)
}

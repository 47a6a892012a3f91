// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parses the `format` file of an event.

use std::fmt;

use super::symbols::Symbols;
use crate::table::Unit;

/// Contents of a `format` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Name of the event, without its system.
    pub name: String,
    /// Number of the event.
    pub id: u32,
    /// Fields; the ones common to all events come first.
    pub fields: Vec<Field>,
    /// Print format and its arguments, from `print fmt:`.
    pub print: String,
}

/// Field of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Name in keys, values and filters.
    pub name: String,
    /// C type. An array includes its length: `char[16]`.
    pub ty: String,
    /// Offset in the record, in bytes.
    pub offset: u32,
    /// Size in the record, in bytes.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Whether all events have it.
    pub common: bool,
    /// Kind of its content.
    pub kind: FieldKind,
}

/// Kind of a field's content, as far as hist triggers and filters distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldKind {
    /// Number of 1, 2, 4 or 8 bytes.
    #[default]
    Number,
    /// String in the record.
    Text,
    /// Pointer to a string: a number for a histogram, a string for a filter.
    TextPointer,
    /// Stack trace.
    Stack,
    /// Set of CPUs.
    CpuMask,
    /// Array as long as an address of the internet protocol, or a socket address; the bytes may be
    /// elsewhere in the record. 4 bytes also work as a number.
    Bytes,
    /// Unsupported: neither a histogram nor a filter can use it.
    Other,
}

/// Fault in a format file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Number of the line, from 1.
    pub line: usize,
    what: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the format: {}", self.line, self.what)
    }
}

impl std::error::Error for Error {}

impl Format {
    /// Parses the contents of a `format` file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut format = Self::default();
        for (index, line) in text.lines().enumerate() {
            let error = |what| Error { line: index + 1, what };
            let line = line.trim();
            if let Some(field) = line.strip_prefix("field:") {
                format.fields.push(Field::parse(field).map_err(error)?);
            } else if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().map_err(|_| error("the ID is not a number"))?;
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.print = print.trim().to_owned();
            }
        }
        if format.name.is_empty() || format.fields.is_empty() {
            let line = text.lines().count().max(1);
            return Err(Error {
                line,
                what: "missing name or fields",
            });
        }
        Ok(format)
    }

    /// Looks up a field by name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Field with the string that another field points to in user memory. For strings passed to
    /// system calls, the kernel copies the contents into a field of their own
    /// (`syscall_enter_define_fields()`).
    pub fn text_behind(&self, name: &str) -> Option<&Field> {
        let points = self.field(name)?.ty.contains('*');
        let text = self.field(&format!("__{name}_val"));
        text.filter(|text| points && text.kind == FieldKind::Text)
    }

    /// Fields that are not common to all events.
    pub fn own_fields(&self) -> impl Iterator<Item = &Field> + Clone {
        self.fields.iter().filter(|field| !field.common)
    }

    /// Field with the remote address of the event. Of several, prefers the one that holds both IPv4
    /// and IPv6.
    pub fn address(&self) -> Option<&Field> {
        let addresses = || self.own_fields().filter(|field| field.is_address());
        let named = |name: &str| addresses().find(|field| field.name == name);
        let of_received = self.is_of_received_packet().then(|| named("saddr")).flatten();
        let of_other = || ["daddr_v6", "daddr", "dstaddr", "dst"].into_iter().find_map(named);
        of_received
            .or_else(of_other)
            .or_else(|| addresses().max_by_key(|field| field.size))
    }

    /// Returns whether its addresses belong to a received packet, so that the source is the remote
    /// side.
    fn is_of_received_packet(&self) -> bool {
        let name = self.name.as_str();
        matches!(
            name,
            "icmp_send"
                | "tcp_ao_handshake_failure"
                | "tcp_ao_key_not_found"
                | "tcp_ao_mismatch"
                | "tcp_ao_rnext_request"
                | "tcp_ao_wrong_maclen"
                | "tcp_bad_csum"
                | "udp_fail_queue_rcv_skb"
        ) || name.starts_with("tcp_hash_")
    }

    /// Names of signed fields, including the ones common to all events.
    pub fn signed(&self) -> Vec<String> {
        let signed = self.fields.iter().filter(|field| field.signed);
        signed.map(|field| field.name.clone()).collect()
    }

    /// Names of a field's values in the print format.
    pub fn symbols(&self, field: &str) -> Option<Symbols> {
        Symbols::parse(&format!("print fmt:{}", self.print), field)
    }

    /// Unit of a number, guessed from its name or from the print format: `delay=%Lu [ns]`.
    pub fn unit(&self, field: &str) -> Option<Unit> {
        const WORDS: [(&str, Unit); 3] = [
            ("ns", Unit::Nanoseconds),
            ("us", Unit::Microseconds),
            ("bytes", Unit::Bytes),
        ];
        let is_number = |field: &Field| field.kind == FieldKind::Number && !field.common;
        self.field(field).filter(|field| is_number(field))?;
        let of_word = |word: &str| WORDS.iter().find(|(known, _)| *known == word).map(|(_, unit)| *unit);
        let of_name = || {
            let last = field.rsplit('_').next().filter(|last| last.len() < field.len());
            let is_bytes = field == "bytes" || field.starts_with("bytes_");
            last.and_then(of_word).or(is_bytes.then_some(Unit::Bytes))
        };
        let printed = || {
            let shown = format!("{field}=%");
            // Excludes a match at the end of a longer name.
            let is_whole = |at: usize| !self.print[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let (at, _) = self.print.match_indices(&shown).find(|(at, _)| is_whole(*at))?;
            let rest = &self.print[at + shown.len()..];
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            let word = rest.trim_start().trim_start_matches(['[', '(']);
            of_word(word.split(|c: char| !c.is_ascii_alphabetic()).next()?)
        };
        printed().or_else(of_name)
    }
}

impl Field {
    /// Returns whether it is an address of the internet protocol, judging by type and name.
    pub fn is_address(&self) -> bool {
        let name = self.name.as_str();
        let is_named = name.contains("addr") || matches!(name, "src" | "dst" | "gw" | "gw4" | "gw6" | "v4" | "v6");
        self.kind == FieldKind::Bytes && is_named
    }

    /// Returns whether a key can use it, without a modifier or with the one added automatically.
    pub fn is_key(&self) -> bool {
        match self.kind {
            FieldKind::Other | FieldKind::CpuMask => false,
            FieldKind::Bytes => self.is_address(),
            _ => self.size > 0,
        }
    }

    /// Returns whether a filter can test it.
    pub fn is_filtered(&self) -> bool {
        match self.kind {
            FieldKind::Other => false,
            FieldKind::Bytes => self.size == 4 && !self.is_elsewhere(),
            _ => true,
        }
    }

    /// Returns whether the field only holds the position of its bytes in the record.
    pub fn is_elsewhere(&self) -> bool {
        is_elsewhere(&self.ty)
    }

    /// Parses the text after `field:`.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next().unwrap_or_default();
        let (ty, name) = split_declaration(declaration).ok_or("a field has no name")?;
        let mut field = Self {
            name,
            ty,
            ..Self::default()
        };
        let mut signed = None;
        let mut size = None;
        for part in parts {
            let number = |value: &str| {
                value
                    .parse::<u32>()
                    .map_err(|_| "the offset, size or sign of a field is not a number")
            };
            match part.split_once(':') {
                Some(("offset", value)) => field.offset = number(value)?,
                Some(("size", value)) => size = Some(number(value)?),
                Some(("signed", value)) => signed = Some(number(value)? != 0),
                _ => {}
            }
        }
        field.size = size.ok_or("a field has no size")?;
        field.signed = signed.ok_or("a field has no sign")?;
        field.common = field.name.starts_with("common_");
        field.kind = FieldKind::of(&field.ty, field.size);
        Ok(field)
    }
}

impl FieldKind {
    /// Classifies a type like the kernel's `filter_assign_type()`.
    fn of(ty: &str, size: u32) -> Self {
        let elsewhere = is_elsewhere(ty);
        match () {
            _ if ty.contains("char") && (elsewhere || ty.contains('[')) => Self::Text,
            _ if ty.contains("cpumask_t") => Self::CpuMask,
            _ if elsewhere && ty.contains("long[]") => Self::Stack,
            _ if matches!(ty, "char *" | "const char *") => Self::TextPointer,
            _ if matches!(ty, "__u8[4]" | "u8[4]" | "__u8[16]" | "u8[16]" | "__u8[28]" | "u8[28]") => Self::Bytes,
            _ if matches!(ty, "__data_loc __u8[]" | "__data_loc u8[]") => Self::Bytes,
            _ if !elsewhere && !ty.contains('[') && matches!(size, 1 | 2 | 4 | 8) => Self::Number,
            _ => Self::Other,
        }
    }

    /// Name of the kind for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Text => "a string",
            Self::TextPointer => "the address of a string",
            Self::Stack => "a stack",
            Self::CpuMask => "a set of CPUs",
            Self::Bytes => "an array of bytes",
            Self::Other => "neither a number nor a string",
        }
    }
}

fn is_elsewhere(ty: &str) -> bool {
    ty.contains("__data_loc") || ty.contains("__rel_loc")
}

/// Splits a declaration in C into type and name. The length of an array becomes part of the type.
fn split_declaration(text: &str) -> Option<(String, String)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (declaration, length) = match text.find('[').filter(|_| text.ends_with(']')) {
        Some(at) => (text[..at].trim_end(), &text[at..]),
        None => (text, ""),
    };
    let start = declaration.rfind(|c| !is_word(c)).map_or(0, |at| at + 1);
    let (ty, name) = declaration.split_at_checked(start)?;
    (!name.is_empty()).then(|| (format!("{}{length}", ty.trim_end()), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SWITCH: &str = include_str!("../../tests/fixtures/events/sched/sched_switch/format");

    #[test]
    fn units() {
        let field = |ty: &str, name: &str| format!("\tfield:{ty} {name};\toffset:8;\tsize:8;\tsigned:0;\n");
        let text = format!(
            "name: x\nformat:\n{}print fmt: \"comm=%s max_delay=%lu us delay=%Lu [ns] age=%lu(us) nsr=%lu nsx runtime=%lu\", REC->delay\n",
            [
                "delay",
                "age",
                "nsr",
                "runtime",
                "bytes_alloc",
                "nr_bytes",
                "bytes",
                "wait_ns",
                "ns",
                "bonus",
                "common_ns"
            ]
            .map(|name| field("u64", name))
            .concat()
                + &field("char[8]", "name_bytes").replace("size:8", "size:16")
        );
        let event = Format::parse(&text).unwrap();
        for (name, unit) in [
            ("delay", Some(Unit::Nanoseconds)),
            ("age", Some(Unit::Microseconds)),
            ("nsr", None),
            ("runtime", None),
            ("bytes_alloc", Some(Unit::Bytes)),
            ("nr_bytes", Some(Unit::Bytes)),
            ("bytes", Some(Unit::Bytes)),
            ("wait_ns", Some(Unit::Nanoseconds)),
            ("ns", None),
            ("bonus", None),
            ("common_ns", None),
            ("name_bytes", None),
            ("nosuch", None),
        ] {
            assert_eq!(event.unit(name), unit, "{name}");
        }
        assert_eq!(Format::parse(SWITCH).unwrap().unit("next_prio"), None);
    }

    #[test]
    fn fields_of_the_scheduler() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 209));
        assert_eq!(format.own_fields().count(), 7);
        let comm = format.field("prev_comm").unwrap();
        assert_eq!(
            (comm.ty.as_str(), comm.offset, comm.size, comm.kind),
            ("char[16]", 8, 16, FieldKind::Text)
        );
        let pid = format.field("common_pid").unwrap();
        assert_eq!(
            (pid.ty.as_str(), pid.signed, pid.common, pid.kind),
            ("int", true, true, FieldKind::Number)
        );
        assert!(format.print.starts_with("\"prev_comm=%s "));
    }

    #[test]
    fn kinds() {
        let field = |text: &str| Field::parse(text).unwrap();
        let tail = "\toffset:8;\tsize:8;\tsigned:0;";
        for (declaration, name, ty, kind) in [
            (
                "__data_loc char[] filename",
                "filename",
                "__data_loc char[]",
                FieldKind::Text,
            ),
            ("const char * what", "what", "const char *", FieldKind::TextPointer),
            (
                "const struct cred *cred",
                "cred",
                "const struct cred *",
                FieldKind::Number,
            ),
            (
                "__data_loc unsigned long[] stack",
                "stack",
                "__data_loc unsigned long[]",
                FieldKind::Stack,
            ),
            ("unsigned long args[6]", "args", "unsigned long[6]", FieldKind::Other),
            (
                "__data_loc cpumask_t cpumask",
                "cpumask",
                "__data_loc cpumask_t",
                FieldKind::CpuMask,
            ),
            ("enum hrtimer_mode mode", "mode", "enum hrtimer_mode", FieldKind::Number),
            ("char buf[]", "buf", "char[]", FieldKind::Text),
        ] {
            let field = field(&format!("{declaration};{tail}"));
            assert_eq!((field.name.as_str(), field.ty.as_str(), field.kind), (name, ty, kind));
        }
    }

    #[test]
    fn addresses_of_the_other_side() {
        let address = |event: &str| {
            let field = |name: &str| format!("\tfield:__u8 {name}[28];\toffset:8;\tsize:28;\tsigned:0;\n");
            let text = format!("name: {event}\nformat:\n{}{}", field("saddr"), field("daddr"));
            Format::parse(&text).unwrap().address().unwrap().name.clone()
        };
        for event in [
            "udp_fail_queue_rcv_skb",
            "tcp_bad_csum",
            "tcp_hash_md5_mismatch",
            "tcp_ao_mismatch",
            "icmp_send",
        ] {
            assert_eq!(address(event), "saddr", "{event}");
        }
        for event in [
            "tcp_probe",
            "tcp_retransmit_skb",
            "tcp_ao_synack_no_key",
            "tcp_ao_rcv_sne_update",
        ] {
            assert_eq!(address(event), "daddr", "{event}");
        }
    }

    #[test]
    fn what_is_a_key_or_filtered() {
        let tail = "\toffset:8;\tsize:4;\tsigned:0;";
        for (declaration, is_key, is_filtered) in [
            ("__data_loc cpumask_t mask", false, true),
            ("__data_loc __u8[] addr", true, false),
            ("__data_loc u8[] client", false, false),
            ("__u8 daddr[4]", true, true),
            ("unsigned int vec", true, true),
        ] {
            let field = Field::parse(&format!("{declaration};{tail}")).unwrap();
            assert_eq!(
                (field.is_key(), field.is_filtered()),
                (is_key, is_filtered),
                "{declaration}"
            );
        }
    }

    #[test]
    fn names_of_values() {
        let states = Format::parse(SWITCH).unwrap().symbols("prev_state").unwrap();
        assert!(states.are_flags());
        assert_eq!(states.names().len(), 8);
        assert_eq!((states.value("D"), states.value("R")), (Some(2), None));
        assert_eq!(Format::parse(SWITCH).unwrap().symbols("prev_pid"), None);
    }

    #[test]
    fn what_is_no_format() {
        let said = |text| Format::parse(text).unwrap_err().to_string();
        assert_eq!(said(""), "line 1 of the format: missing name or fields");
        assert_eq!(said("name: x\nID: y\n"), "line 2 of the format: the ID is not a number");
        assert_eq!(
            said("field:int x;\tsize:4;"),
            "line 1 of the format: a field has no sign"
        );
        assert_eq!(
            said("field:int *;\tsize:4;\tsigned:1;"),
            "line 1 of the format: a field has no name"
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "(name: x\n)?(\tfield:[ -~é]{0,30};\toffset:[0-9]{1,12};\n?){0,3}[ -~\n]{0,50}") {
            let _ = Format::parse(&text);
        }
    }
}

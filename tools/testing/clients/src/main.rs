// SPDX-License-Identifier: GPL-2.0

//! Existing programs: the crates of LinuxTracepoints register events, see that somebody listens,
//! and write; perf records; and another crate of theirs decodes the records to the written values.
//!
//! They look for `user_events_data` in the kernel's tracing directory.

mod perf;

use eventheader_dynamic::EventBuilder;
use eventheader_dynamic::FieldFormat;
use eventheader_dynamic::Level;
use eventheader_dynamic::Opcode;
use eventheader_dynamic::Provider;
use perf::Recording;
use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::pin::pin;
use std::pin::Pin;
use std::thread;
use tracepoint::EventDataDescriptor;
use tracepoint::TracepointState;
use tracepoint_decode::EventHeaderEnumeratorContext;
use tracepoint_decode::PerfByteReader;
use tracepoint_decode::PerfConvertOptions;
use tracepoint_decode::PerfEventDecodingStyle;
use tracepoint_decode::PerfEventFormat;
use tracepoint_decode::PerfFieldArray;

/// Errors that the crates pass on unchanged.
const EBADF: i32 = 9;
const EADDRINUSE: i32 = 98;
const EFAULT: i32 = 14;

/// Bytes of the header of every record.
const HEADER: usize = 8;

fn event_file(event: &str, file: &str) -> String {
    format!("/sys/kernel/tracing/events/user_events/{event}/{file}")
}

fn exists(event: &str) -> bool {
    Path::new(&event_file(event, "id")).exists()
}

/// Makes ftrace listen, or stop.
fn enable(event: &str, on: bool) {
    fs::write(event_file(event, "enable"), if on { "1" } else { "0" }).expect("enable is written");
}

/// The Test Anything Protocol.
#[derive(Default)]
struct Tap {
    points: u32,
    failures: u32,
}

impl Tap {
    fn ok(&mut self, passed: bool, name: &str) {
        self.points += 1;
        if !passed {
            self.failures += 1;
        }
        let not = if passed { "" } else { "not " };
        println!("{not}ok {} - {name}", self.points);
    }

    fn is<T: PartialEq + std::fmt::Debug>(&mut self, got: T, expected: T, name: &str) {
        let same = got == expected;
        self.ok(same, name);
        if !same {
            println!("# expected {expected:?}");
            println!("# got      {got:?}");
        }
    }
}

/// Reads the format file of an event with the crate.
fn format_of(event: &str) -> PerfEventFormat {
    let text = fs::read_to_string(event_file(event, "format")).expect("there is a format");
    PerfEventFormat::parse(true, "user_events", &text).expect("the crate reads the format")
}

/// Decodes a record to JSON, by the format of its event.
fn decode(format: &PerfEventFormat, record: &[u8]) -> String {
    assert_eq!(format.common_fields_size() as usize, HEADER);
    let type_ = u16::from_ne_bytes([record[0], record[1]]);
    assert_eq!(u32::from(type_), format.id(), "the record is of this event");
    let mut text = String::new();
    if format.decoding_style() == PerfEventDecodingStyle::EventHeader {
        let mut context = EventHeaderEnumeratorContext::new();
        let mut items = context
            .enumerate_with_name_and_data(
                format.name(),
                &record[HEADER..],
                EventHeaderEnumeratorContext::MOVE_NEXT_LIMIT_DEFAULT,
            )
            .expect("it is an event of that kind");
        let options = PerfConvertOptions::default();
        let info = items.event_info();
        text += &format!(
            "{} {} opcode {} level {} keyword {:x}: ",
            info.provider_name(),
            info.name_display(),
            info.header().opcode,
            info.header().level,
            info.keyword(),
        );
        items
            .write_json_item_and_move_next_sibling(&mut text, false, options)
            .expect("a string can be written to");
        return text;
    }
    let reader = PerfByteReader::new(cfg!(target_endian = "big"));
    for field in &format.fields()[format.common_field_count()..] {
        let value = if field.array() == PerfFieldArray::DataLoc4 {
            // The crate's value of a string elsewhere in the record is empty.
            let bytes = field
                .get_field_bytes(record, reader)
                .expect("it is in there");
            String::from_utf8_lossy(bytes).escape_debug().to_string()
        } else {
            let value = field.get_field_value_with_data_and_reader(record, reader);
            value.json_display().to_string()
        };
        text += &format!("{}={value} ", field.name());
    }
    text
}

fn register(state: Pin<&TracepointState>, description: &str) -> i32 {
    let description = CString::new(description).expect("no NUL");
    // SAFETY: Dropping the state unregisters it before its memory is freed.
    unsafe { state.register(&description) }
}

/// Definition of the event of [`tracepoints`].
const POINT: &str = "cl_point u32 number;s16 below;char[8] word;__data_loc char[] text;u64 big";

/// The fields before the text, packed.
fn point(number: u32, text: &[u8]) -> Vec<u8> {
    let fixed = 4 + 2 + 8 + 4 + 8;
    let place = ((text.len() as u32) << 16) | (HEADER + fixed) as u32;
    let mut bytes = Vec::new();
    bytes.extend(number.to_ne_bytes());
    bytes.extend((-7i16).to_ne_bytes());
    bytes.extend(b"fixed\0\0\0");
    bytes.extend(place.to_ne_bytes());
    bytes.extend((u64::MAX - u64::from(number)).to_ne_bytes());
    bytes.extend(text);
    bytes
}

fn write(state: &TracepointState, payload: &[u8]) -> i32 {
    state.write(&mut [
        EventDataDescriptor::zero(),
        EventDataDescriptor::from_bytes(&payload[..5]),
        EventDataDescriptor::from_bytes(&payload[5..]),
    ])
}

/// The crate `tracepoint`: fields of the kernel's own types.
fn tracepoints(tap: &mut Tap) {
    {
        let state = pin!(TracepointState::new(0));
        let state = state.as_ref();
        tap.is(register(state, POINT), 0, "tracepoint registers");
        tap.ok(!state.enabled(), "it is not enabled");
        tap.is(
            write(&state, &point(1, b"nobody\0")),
            EBADF,
            "so nothing is written",
        );
        let other = pin!(TracepointState::new(0));
        tap.is(
            register(other.as_ref(), "cl_point u8 a"),
            EADDRINUSE,
            "not with other fields",
        );

        let recording = Recording::begin("cl_point").expect("perf opens the event");
        tap.ok(state.enabled(), "perf enables it");
        tap.is(write(&state, &point(1, b"one\0")), 0, "it is written");
        tap.is(write(&state, &point(2, b"the second\0")), 0, "once more");
        tap.is(
            write(&state, &point(3, b"no end")),
            EFAULT,
            "a string without an end is refused",
        );
        let format = format_of("cl_point");
        let records: Vec<_> = recording
            .records()
            .iter()
            .map(|r| decode(&format, r))
            .collect();
        let expected = |number: u32, text: &str| {
            let big = u64::MAX - u64::from(number);
            format!("number={number} below=-7 word=\"fixed\" text={text}\\0 big={big} ")
        };
        tap.is(
            records,
            vec![expected(1, "one"), expected(2, "the second")],
            "what perf recorded decodes to what was written",
        );
        enable("cl_point", true);
        drop(recording);
        tap.ok(state.enabled(), "it is enabled as long as ftrace listens");
        enable("cl_point", false);
        tap.ok(!state.enabled(), "and no longer");
        tap.is(state.unregister(), 0, "it is unregistered");
        tap.is(register(state, POINT), 0, "and registered again");
    }
    // The crate keeps its file open, which keeps the event in the table.
    tap.ok(exists("cl_point"), "the event stays with the file");
}

/// The crate `eventheader_dynamic`: each record describes its own fields.
fn event_headers(tap: &mut Tap) {
    let mut provider = Provider::new("cl_Provider", &Provider::new_options());
    let set = provider.register_set(Level::Verbose, 0x1f);
    let quiet = provider.register_set(Level::Error, 1);
    tap.is(
        (set.errno(), quiet.errno()),
        (0, 0),
        "eventheader_dynamic registers two sets",
    );
    let (event, quiet_event) = ("cl_Provider_L5K1f", "cl_Provider_L2K1");
    tap.ok(exists(event) && exists(quiet_event), "which are two events");
    tap.ok(!set.enabled() && !quiet.enabled(), "none is enabled");

    let recording = Recording::begin(event).expect("perf opens the event");
    tap.ok(
        set.enabled() && !quiet.enabled(),
        "perf enables one of them",
    );
    let mut builder = EventBuilder::new();
    builder
        .reset("Request", 0)
        .opcode(Opcode::ActivityStart)
        .add_value("id", 4711u32, FieldFormat::Default, 0)
        .add_value("status", -5i32, FieldFormat::SignedInt, 0)
        .add_str("path", "/höme", FieldFormat::Default, 0)
        .add_value_sequence("sizes", &[1u16, 2, 65535], FieldFormat::Default, 0)
        .add_struct("from", 2, 0)
        .add_value("port", 443u16, FieldFormat::Default, 0)
        .add_str_sequence("names", ["a", "bc"], FieldFormat::Default, 0);
    let activity = [7; 16];
    tap.is(
        builder.write(&set, Some(&activity), None),
        0,
        "an event is written",
    );
    tap.is(
        builder.write(&quiet, None, None),
        EBADF,
        "but not to the other one",
    );
    builder.reset("Empty", 0);
    tap.is(
        builder.write(&set, None, None),
        0,
        "an event without fields is, too",
    );
    let format = format_of(event);
    let records: Vec<_> = recording
        .records()
        .iter()
        .map(|r| decode(&format, r))
        .collect();
    tap.is(
        records,
        vec![
            "cl_Provider Request opcode 1 level 5 keyword 1f: \
             \"id\":4711,\"status\":-5,\"path\":\"/höme\",\"sizes\":[1,2,65535],\
             \"from\":{\"port\":443,\"names\":[\"a\",\"bc\"]}"
                .to_owned(),
            "cl_Provider Empty opcode 0 level 5 keyword 1f: ".to_owned(),
        ],
        "what perf recorded decodes to what was written",
    );
    drop(recording);
    tap.ok(!set.enabled(), "it is not enabled any more");
    provider.unregister();
}

/// Many threads write at once: no record is lost, or mixed with another one.
fn threads(tap: &mut Tap) {
    let (writers, each) = (4u32, 200u32);
    let state = pin!(TracepointState::new(0));
    let state = state.as_ref();
    tap.is(
        register(state, "cl_many u32 writer;u32 number;u64 product"),
        0,
        "one for many threads",
    );
    let recording = Recording::begin("cl_many").expect("perf opens the event");
    let state = state.get_ref();
    let failed: u32 = thread::scope(|scope| {
        let write_all = |writer: u32| {
            (0..each)
                .filter(|&number| {
                    let mut payload = Vec::new();
                    payload.extend(writer.to_ne_bytes());
                    payload.extend(number.to_ne_bytes());
                    payload.extend((u64::from(number) * u64::from(writer)).to_ne_bytes());
                    write(state, &payload) != 0
                })
                .count() as u32
        };
        let all: Vec<_> = (0..writers)
            .map(|writer| scope.spawn(move || write_all(writer)))
            .collect();
        all.into_iter()
            .map(|writer| writer.join().expect("no panic"))
            .sum()
    });
    tap.is(failed, 0, "all writes succeed");
    let format = format_of("cl_many");
    let mut got: Vec<_> = recording
        .records()
        .iter()
        .map(|r| decode(&format, r))
        .collect();
    let mut expected: Vec<_> = (0..writers)
        .flat_map(|w| (0..each).map(move |n| format!("writer={w} number={n} product={} ", w * n)))
        .collect();
    got.sort();
    expected.sort();
    tap.ok(
        got == expected,
        "each record is there once, as it was written",
    );
    println!("# {} of {} records", got.len(), expected.len());
}

fn main() {
    let mut tap = Tap::default();
    tracepoints(&mut tap);
    event_headers(&mut tap);
    threads(&mut tap);
    println!("1..{}", tap.points);
    std::process::exit(i32::from(tap.failures > 0));
}

// SPDX-License-Identifier: GPL-2.0

//! Modifiers for the contents of a field: `.ip` and `.string`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

use kernel::error::code::EINVAL;
use kernel::sync::Arc;
use proptest::prelude::*;
use rhist::cpu::Cpu;
use rhist::event::AddressField;
use rhist::event::Context;
use rhist::event::EventDesc;
use rhist::event::FilterType::*;
use rhist::event::Group;
use rhist::event::GroupPlace;
use rhist::event::GroupTask;
use rhist::event::Hit;
use rhist::event::LongBuffer;
use rhist::event::Network;
use rhist::event::Record;
use rhist::event::Stack;
use rhist::event::Tail;
use rhist::filter::Filter;
use rhist::filter::Symbols;
use rhist::hist::Histogram;
use rhist::hist::Targets;
use rhist::sync::PreemptOff;
use rhist::trigger::ErrorText;
use rhist::trigger::HintText;
use serde_json::json;

use super::events::*;
use super::world::World;
use super::world::NOW;

/// An event with all kinds of fields that hold addresses, and with texts behind pointers.
fn packet() -> EventDesc {
    event(
        "test",
        "packet",
        &[
            ("__u8[4]", "v4", 8, 4, false, Other),
            ("__be32", "be", 12, 4, false, Other),
            ("__u8[16]", "v6", 17, 16, false, Other),
            ("__u8[28]", "sock", 33, 28, false, Other),
            ("unsigned char[28]", "chars", 33, 28, true, StaticString),
            ("__data_loc __u8[]", "loc", 61, 4, false, Other),
            ("__data_loc unsigned long[]", "longs", 61, 4, false, Other),
            ("__rel_loc unsigned long[]", "mask", 61, 4, false, Other),
            ("char[16]", "text", 17, 16, true, StaticString),
            ("__u8[6]", "ether", 17, 6, false, Other),
            ("u64", "number", 17, 8, false, Other),
            ("int", "pid", 17, 4, true, Other),
            ("const char *", "name", 65, 8, false, PtrString),
            ("char *", "path", 73, 8, false, PtrString),
        ],
    )
}

fn record() -> Bytes {
    Bytes::new(81)
}

/// A socket address with this port; a shorter one has junk behind it.
fn sockaddr(address: IpAddr, port: u16) -> Vec<u8> {
    let mut bytes = match address {
        IpAddr::V4(v4) => [
            &2u16.to_ne_bytes()[..],
            &port.to_be_bytes(),
            &v4.octets(),
            &[0; 8],
        ]
        .concat(),
        IpAddr::V6(v6) => [
            &10u16.to_ne_bytes()[..],
            &port.to_be_bytes(),
            &[0xab; 4],
            &v6.octets(),
            &[0xab; 4],
        ]
        .concat(),
    };
    bytes.resize(28, 0xee);
    bytes
}

/// The key of the only entry.
#[track_caller]
fn key(hist: &Arc<Histogram>) -> String {
    let entries = entries(hist);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let (_, rest) = entries[0].split_once(": ").unwrap();
    rest.split_once(" }").unwrap().0.trim_end().to_owned()
}

#[test]
fn addresses_as_they_are_shown() {
    let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
    for (text, shown) in [
        ("::1", "::1"),
        ("::", "::"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:0DB8::A", "2001:db8::a"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1", "fe80::1"),
    ] {
        let hist = hist(&packet(), "keys=v6.ip");
        record().put(17, &v6(text)).hit(&hist);
        assert_eq!(key(&hist), shown, "{text}");
    }
    for (field, offset) in [("v4", 8), ("be", 12)] {
        let hist = hist(&packet(), &format!("keys={field}.ip"));
        record().put(offset, &[192, 0, 2, 1]).hit(&hist);
        assert_eq!(key(&hist), "192.0.2.1");
    }
}

#[test]
fn a_line_is_of_one_width() {
    let hist = hist(&packet(), "keys=v6.ip");
    let v6: Ipv6Addr = "::ffff:192.0.2.1".parse().unwrap();
    record().put(17, &v6.octets()).hit(&hist);
    assert_eq!(
        entries(&hist),
        ["{ v6: 192.0.2.1                               } hitcount:          1"]
    );
    assert!(line(&hist).starts_with("hist:keys=v6.ip:vals=hitcount:"));
}

#[test]
fn socket_addresses() {
    let v4: IpAddr = "192.0.2.1".parse().unwrap();
    let v6: IpAddr = "2001:db8::1".parse().unwrap();
    for address in [v4, v6] {
        for name in ["sock", "chars"] {
            let hist = hist(&packet(), &format!("keys={name}.ip"));
            for port in [1, 2] {
                record().put(33, &sockaddr(address, port)).hit(&hist);
            }
            assert_eq!(key(&hist), address.to_string());
        }
        let hist = hist(&packet(), "keys=loc.ip");
        record().data_loc(61, &sockaddr(address, 3)).hit(&hist);
        assert_eq!(key(&hist), address.to_string());
    }
    // An unknown family, or a short address.
    let unknown = hist(&packet(), "keys=sock.ip");
    record().put(33, &[0; 28]).hit(&unknown);
    assert_eq!(key(&unknown), "::");
    let short = hist(&packet(), "keys=loc.ip");
    record().data_loc(61, &sockaddr(v6, 3)[..20]).hit(&short);
    assert_eq!(key(&short), "::");
}

/// By the address, not by a number in it.
#[test]
fn entries_are_sorted_by_address() {
    let v4 = |hist: &Arc<Histogram>, bytes: [u8; 4]| record().put(8, &bytes).hit(hist);
    let hist = hist(&packet(), "keys=v4.ip:sort=v4");
    for address in [[10, 0, 0, 2], [9, 0, 0, 3], [10, 0, 0, 1], [200, 0, 0, 0]] {
        v4(&hist, address);
    }
    let sorted: Vec<_> = entries(&hist)
        .iter()
        .map(|entry| entry[6..].split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(sorted, ["9.0.0.3", "10.0.0.1", "10.0.0.2", "200.0.0.0"]);
}

#[test]
fn with_other_keys_and_in_json() {
    let hist = hist(&packet(), "keys=number.hex,v6.ip,v4.ip,sock.ip,name.string");
    let v6: Ipv6Addr = "2001:db8::7".parse().unwrap();
    record()
        .put(8, &[127, 0, 0, 1])
        .put(17, &v6.octets())
        .put(33, &sockaddr(v6.into(), 80))
        .hit(&hist);
    let file = text(|out| show_jsonl(out, [view(&hist)].into_iter(), &Functions));
    let lines: Vec<serde_json::Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let keys = &lines[0]["keys"];
    assert_eq!(keys[1]["modifier"], json!("ip"));
    assert_eq!(keys[1]["type"], json!("__u8[16]"));
    assert_eq!(keys[4]["modifier"], json!("string"));
    assert_eq!(
        lines[1]["keys"].as_array().unwrap()[1..],
        [
            json!("2001:db8::7"),
            json!("127.0.0.1"),
            json!("2001:db8::7"),
            json!("(fault)")
        ]
    );
}

#[test]
fn addresses_are_saved() {
    let world = World::new(vec![packet()], Vec::new(), &[], false);
    world.add(
        "packet",
        "hist:keys=common_cpu:n=be:onmax($n).save(v6.ip,v4.ip,sock.ip)",
    );
    let v6: Ipv6Addr = "2001:db8::7".parse().unwrap();
    let record = record()
        .put(8, &[127, 0, 0, 1])
        .put(12, &9u32.to_ne_bytes())
        .put(17, &v6.octets())
        .put(33, &sockaddr("192.0.2.1".parse().unwrap(), 80));
    world.hit("packet", &record, NOW);
    let file = world.hist_file("packet");
    let saved = "max:          9  v6.ip: 2001:db8::7  v4.ip: 127.0.0.1  sock.ip: 192.0.2.1";
    assert!(file.contains(saved), "{file}");
    let json = world.hist_jsonl("packet");
    let saved = r#""saved":["2001:db8::7","127.0.0.1","192.0.2.1"]"#;
    assert!(json.contains(saved), "{json}");
}

/// Memory with texts, which the context of a hit reads.
struct Memory<'a>(&'a [u8]);

/// Where it is.
const MEMORY: usize = 0xffff_8000_1234_0008;

impl Context for Memory<'_> {
    fn time(&self, _: rhist::event::Clock) -> u64 {
        TIME
    }

    fn stack(&self, _: PreemptOff<'_>, _: &mut Stack) {}

    fn user_stack(&self, _: PreemptOff<'_>, _: usize, _: &mut Tail<'_>) {
        unreachable!()
    }

    fn long_buffer<'a>(&'a self, _: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        unreachable!()
    }

    fn comm(&self) -> [u8; 16] {
        [0; 16]
    }

    fn comm_of(&self, _: u32) -> Option<[u8; 16]> {
        unreachable!()
    }

    fn tgid(&self) -> u32 {
        unreachable!()
    }

    fn ppid(&self) -> u32 {
        unreachable!()
    }

    fn cgroup(&self) -> u64 {
        unreachable!()
    }

    fn cgroup_of(&self, _: u32) -> u64 {
        unreachable!()
    }

    fn cgroup_node<'a>(&self, _: PreemptOff<'a>, _: GroupTask) -> Option<Group<'a>> {
        unreachable!()
    }

    fn is_in_cgroup(&self, _: GroupPlace) -> bool {
        unreachable!()
    }

    fn read(&self, _: &mut [u8], _: usize) -> bool {
        unreachable!()
    }

    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool {
        let at = address.wrapping_sub(MEMORY);
        match self.0.get(at..at.wrapping_add(to.len())) {
            Some(bytes) => {
                to.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}

impl rhist::filter::Memory for Memory<'_> {
    fn read_kernel(&self, _: &mut [u8], _: usize) -> bool {
        unreachable!()
    }

    fn read_user(&self, _: &mut [u8], _: usize) -> bool {
        unreachable!()
    }
}

impl Symbols for Memory<'_> {
    fn group(&self, _: &[u8]) -> Option<GroupPlace> {
        None
    }

    fn address(&self, _: &[u8]) -> Option<usize> {
        unreachable!()
    }

    fn function(&self, _: usize) -> Option<(usize, usize)> {
        unreachable!()
    }
}

fn hit_with(hist: &Arc<Histogram>, record: &Bytes, memory: &[u8]) {
    let (cpu, context) = (Cpu::enter(0), Memory(memory));
    let hit = Hit::new(Record::new(&record.0), cpu.preempt(), &context);
    hist.hit(hist.code(), &Targets::default(), &hit);
}

#[test]
fn texts_behind_pointers() {
    let hist = hist(&packet(), "keys=name.string");
    // Only the bytes behind the NUL differ.
    let memory = [
        &b"hrtimer_wakeup\0x"[..],
        &b"hrtimer_wakeup\0y"[..],
        &[b'z'; 300],
    ]
    .concat();
    for at in [0, 16, 32] {
        let record = record().put(65, &(MEMORY + at).to_ne_bytes());
        hit_with(&hist, &record, &memory);
    }
    hit_with(&hist, &record().put(65, &0usize.to_ne_bytes()), &memory);
    let mut entries = entries(&hist);
    entries.sort();
    let long = "z".repeat(255);
    assert_eq!(
        entries,
        [
            format!("{{ name: {:<50} }} hitcount:          1", "(fault)"),
            format!("{{ name: {:<50} }} hitcount:          2", "hrtimer_wakeup"),
            format!("{{ name: {long} }} hitcount:          1"),
        ]
    );
    assert!(line(&hist).starts_with("hist:keys=name.string:"));
}

/// Without the modifier it is a number, as in C.
#[test]
fn a_pointer_is_a_number() {
    let hist = hist(&packet(), "keys=name");
    record().put(65, &77u64.to_ne_bytes()).hit(&hist);
    assert_eq!(
        entries(&hist),
        ["{ name:         77 } hitcount:          1"]
    );
}

/// Refusals have C's text for an unknown modifier, and a hint of ours.
#[test]
fn where_they_cannot_be() {
    use HintText::{Address, PointedText};
    for (params, hint) in [
        ("keys=text.^ip", Address),
        ("keys=ether.^ip", Address),
        ("keys=number.^ip", Address),
        ("keys=pid.^ip", Address),
        ("keys=longs.^ip", Address),
        ("keys=mask.^ip", Address),
        ("keys=name.^ip", Address),
        ("keys=cpu.^ip", Address),
        ("keys=hitcount.^ip", Address),
        ("keys=common_timestamp.^ip", Address),
        ("keys=v4.^ip+1", Address),
        ("keys=v4:vals=v4.^ip", Address),
        ("keys=v4:x=v6.^ip", Address),
        ("keys=text.^string", PointedText),
        ("keys=v6.^string", PointedText),
        ("keys=common_comm.^string", PointedText),
        ("keys=v4:vals=name.^string", PointedText),
        ("keys=name.^string+1", PointedText),
    ] {
        let (before, after) = params.split_once('^').unwrap();
        let Err(error) = build(&packet(), &format!("{before}{after}")) else {
            panic!("{params} is taken");
        };
        let caret = "hist:".len() + before.len();
        let text = ErrorText::BadFieldModifier;
        assert_eq!(
            error,
            rhist::trigger::Error::new(text, caret)
                .hinted(hint, caret)
                .with(EINVAL),
            "{params}"
        );
    }
}

/// A histogram and a filter agree on addresses, in all kinds of fields.
#[test]
fn filters() {
    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    let v4: IpAddr = "192.0.2.1".parse().unwrap();
    let record = record()
        .put(8, &[192, 0, 2, 1])
        .put(12, &[10, 0, 0, 1])
        .put(17, &"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets())
        .put(33, &sockaddr(v4, 80))
        .data_loc(61, &sockaddr(v6, 80));
    for (filter, passes) in [
        ("v4.ip == 192.0.2.1", true),
        ("v4.ip == ::ffff:192.0.2.1", true),
        ("v4.ip == 192.0.2.2", false),
        ("v4.ip != 192.0.2.2", true),
        ("v4.ip == 192.0.0.0/16", true),
        ("v4.ip != 192.0.0.0/16", false),
        ("be.ip == 10.0.0.0/8 && v6.ip == 2001:db8::/32", true),
        ("v6.ip == 2001:db8::7", true),
        ("(v6.ip==::1||sock.ip==192.0.2.1)", true),
        ("!(chars.ip == 192.0.2.1)", false),
        ("loc.ip == 2001:DB8:0::7", true),
        ("loc.ip == ::/0", true),
        ("v6.ip == 0.0.0.0/0", false),
        ("v4.ip == 0.0.0.0/0", true),
    ] {
        let parsed = Filter::parse(filter.as_bytes(), &packet(), CPUS, &Memory(&[]));
        let parsed = parsed.unwrap_or_else(|error| panic!("{filter}: {error:?}"));
        let (cpu, context) = (Cpu::enter(0), Memory(&[]));
        let hit = Hit::new(Record::new(&record.0), cpu.preempt(), &context);
        assert_eq!(parsed.matches(&hit, &context), passes, "{filter}");
        assert!(parsed.is_leaf());
    }
}

#[test]
fn networks_that_are_none() {
    for text in [
        "",
        "10",
        "10.0.0",
        "10.0.0.0/33",
        "10.0.0.0/",
        "::/129",
        "::/-1",
        "x",
        "1.2.3.4:80",
        "[::1]",
        "::1%lo",
    ] {
        assert_eq!(Network::parse(text.as_bytes()), None, "{text}");
    }
    let all = Network::parse(b"0.0.0.0/0").unwrap();
    assert!(all.contains(Ipv4Addr::BROADCAST.to_ipv6_mapped().octets()));
    assert!(!all.contains(Ipv6Addr::LOCALHOST.octets()));
}

/// A socket address of any family, of any length.
fn any_socket() -> impl Strategy<Value = Vec<u8>> {
    // Few different addresses, of IPv4 in both families, and with zeros at all places.
    let v4 = prop_oneof![Just([192, 0, 2, 1]), Just([0, 0, 0, 0]), any::<[u8; 4]>()];
    let group = prop_oneof![3 => Just(0u16), 1 => Just(1), 1 => any::<u16>()];
    let address = prop_oneof![
        v4.clone().prop_map(IpAddr::from),
        v4.prop_map(|v4| Ipv4Addr::from(v4).to_ipv6_mapped().into()),
        prop::array::uniform8(group).prop_map(IpAddr::from),
    ];
    let other = prop_oneof![
        Just(0u16),
        Just(1),
        Just(16),
        Just(2u16.swap_bytes()),
        any::<u16>()
    ];
    let family = prop_oneof![4 => Just(None), 1 => other.prop_map(Some)];
    let len = prop_oneof![3 => Just(28usize), 1 => 0..28usize];
    (address, any::<u16>(), family, len).prop_map(|(address, port, family, len)| {
        let mut bytes = sockaddr(address, port);
        if let Some(family) = family {
            bytes[..2].copy_from_slice(&family.to_ne_bytes());
        }
        bytes.truncate(len);
        bytes
    })
}

/// The address in a socket address as it has to be shown: as RFC 5952 has it, a mapped IPv4 address
/// as that, and `::` without one.
fn shown(sockaddr: &[u8]) -> String {
    let dotted = |bytes: &[u8]| {
        bytes
            .iter()
            .map(u8::to_string)
            .collect::<Vec<_>>()
            .join(".")
    };
    let family = sockaddr
        .get(..2)
        .map_or(0, |family| u16::from_ne_bytes([family[0], family[1]]));
    let address = match family {
        2 if sockaddr.len() >= 8 => return dotted(&sockaddr[4..8]),
        10 if sockaddr.len() >= 24 => &sockaddr[8..24],
        _ => return "::".to_owned(),
    };
    if address.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]) {
        return dotted(&address[12..]);
    }
    let groups: Vec<_> = address
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let text = |groups: &[u16]| {
        groups
            .iter()
            .map(|group| format!("{group:x}"))
            .collect::<Vec<_>>()
            .join(":")
    };
    // The first one of the longest runs of zeros; one zero alone is none.
    for len in (2..=8).rev() {
        for at in 0..=8 - len {
            if groups[at..at + len].iter().all(|&group| group == 0) {
                return format!("{}::{}", text(&groups[..at]), text(&groups[at + len..]));
            }
        }
    }
    text(&groups)
}

proptest! {
    /// One entry for each address, whatever its family, with as many hits as a filter by its text
    /// lets through.
    #[test]
    fn any_socket_address(sockets in prop::collection::vec(any_socket(), 1..40)) {
        let hist = hist(&packet(), "keys=loc.ip");
        let records: Vec<_> = sockets.iter().map(|socket| record().data_loc(61, socket)).collect();
        let mut expected: BTreeMap<String, usize> = BTreeMap::new();
        for (socket, record) in sockets.iter().zip(&records) {
            record.hit(&hist);
            *expected.entry(shown(socket)).or_default() += 1;
        }
        let got: BTreeMap<String, usize> = entries(&hist)
            .iter()
            .map(|entry| {
                let words: Vec<_> = entry.split_whitespace().collect();
                (words[2].to_owned(), words[5].parse().unwrap())
            })
            .collect();
        prop_assert_eq!(entries(&hist).len(), got.len());
        prop_assert_eq!(&got, &expected);
        for (address, hits) in got {
            let filter = format!("loc.ip == {address}");
            let filter = Filter::parse(filter.as_bytes(), &packet(), CPUS, &Memory(&[])).unwrap();
            let passes = records.iter().filter(|record| {
                let (cpu, context) = (Cpu::enter(0), Memory(&[]));
                filter.matches(&Hit::new(Record::new(&record.0), cpu.preempt(), &context), &context)
            });
            prop_assert_eq!(passes.count(), hits, "{}", address);
        }
    }

    /// The standard library parses and formats the address in the same way.
    #[test]
    fn any_address(octets: [u8; 16], v4: [u8; 4], port: u16) {
        let address = Ipv6Addr::from(octets);
        let hist = hist(&packet(), "keys=v6.ip");
        record().put(17, &octets).hit(&hist);
        prop_assert_eq!(key(&hist), address.to_canonical().to_string());
        let socket = |address: IpAddr| {
            AddressField::Socket(0).read(Record::new(&sockaddr(address, port)))
        };
        prop_assert_eq!(socket(address.into()), octets);
        let v4 = Ipv4Addr::from(v4);
        let mapped = v4.to_ipv6_mapped().octets();
        prop_assert_eq!(socket(v4.into()), mapped);
        record().put(17, &mapped).hit(&hist);
        let shown = format!(": {v4} ");
        let entries = entries(&hist);
        prop_assert!(entries.iter().any(|entry| entry.contains(&shown)), "{:?}", entries);
    }

    /// Any record, of any length.
    #[test]
    fn any_record(bytes: Vec<u8>, at in 0u32..64) {
        for field in [AddressField::V4, AddressField::V6, AddressField::Socket, AddressField::DataLoc] {
            field(at).read(Record::new(&bytes));
        }
    }

    #[test]
    fn networks(address: u128, other: u128, bits in 0u32..=128) {
        let text = format!("{}/{bits}", Ipv6Addr::from(address));
        let network = Network::parse(text.as_bytes()).unwrap();
        let same = bits == 0 || address >> (128 - bits) == other >> (128 - bits);
        prop_assert_eq!(network.contains(other.to_be_bytes()), same);
        prop_assert!(network.contains(address.to_be_bytes()));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks which keys, values and filters are accepted, and that problems point into the text.
//! Messages are tested by the snapshots of the command.

use proptest::prelude::*;
use rhist_core::grammar::check_filter;
use rhist_core::grammar::check_key;
use rhist_core::grammar::check_keys;
use rhist_core::grammar::check_value;
use rhist_core::problem::Problem;
use rhist_core::tracefs::format::Format;

fn switch() -> Format {
    Format::parse(include_str!("fixtures/events/sched/sched_switch/format")).unwrap()
}

fn kmalloc() -> Format {
    Format::parse(include_str!("fixtures/events/kmem/kmalloc/format")).unwrap()
}

#[test]
fn good_keys() {
    for text in [
        "next_pid",
        "next_pid.hex,prev_comm",
        "common_pid.execname,common_comm,common_cpu",
        "common_timestamp.usecs-$ts0",
        "(common_timestamp-$ts0).log2=3",
        "next_prio.buckets=10",
        "next_pid.log2",
        "-(next_pid)",
        "next_pid*2+prev_pid/0x10",
        "common_stacktrace",
        "cpu,comm",
    ] {
        assert_eq!(check_keys(&switch(), text), Ok(()), "{text}");
    }
    assert_eq!(check_keys(&kmalloc(), "call_site.sym-offset,ptr.sym"), Ok(()));
}

/// The event of a retransmitted TCP segment.
fn retransmit() -> Format {
    Format::parse(
        "name: tcp_retransmit_skb\nID: 1\nformat:
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n
        \tfield:int state;\toffset:24;\tsize:4;\tsigned:1;
        \tfield:__u16 family;\toffset:32;\tsize:2;\tsigned:0;
        \tfield:__u8 saddr[4];\toffset:34;\tsize:4;\tsigned:0;
        \tfield:__u8 daddr[4];\toffset:38;\tsize:4;\tsigned:0;
        \tfield:__u8 saddr_v6[16];\toffset:42;\tsize:16;\tsigned:0;
        \tfield:__u8 daddr_v6[16];\toffset:58;\tsize:16;\tsigned:0;
        \tfield:__be32 group;\toffset:76;\tsize:4;\tsigned:0;
        \tfield:__u8 uuid[16];\toffset:80;\tsize:16;\tsigned:0;
        \tfield:const char * caller;\toffset:96;\tsize:8;\tsigned:0;
        \tfield:__data_loc __u8[] client;\toffset:104;\tsize:4;\tsigned:0;
print fmt: \"x\"",
    )
    .unwrap()
}

#[test]
fn addresses() {
    let event = retransmit();
    for key in [
        "daddr_v6.ip",
        "daddr.ip",
        "daddr_v6",
        "saddr",
        "group.ip",
        "uuid.ip",
        "client.ip",
    ] {
        assert_eq!(check_key(&event, key), Ok(()), "{key}");
    }
    for key in [
        "family.ip",
        "uuid",
        "client",
        "common_pid.ip",
        "daddr_v6.hex",
        "daddr_v6+1",
        "common_comm.ip",
    ] {
        assert!(check_key(&event, key).is_err(), "{key}");
    }
    assert!(check_value(&event, "daddr_v6").is_err());
    for filter in [
        "daddr_v6.ip == 2001:db8::1",
        "daddr_v6.ip != ::/0 && daddr.ip == 10.0.0.0/8",
        "(saddr.ip==127.0.0.1)||state == 1",
        "daddr == 0x0100007f",
    ] {
        assert_eq!(check_filter(&event, filter), Ok(()), "{filter}");
    }
    for filter in [
        "daddr_v6 == 1",
        "client.ip == 1.2.3.4",
        "client == 1",
        "daddr_v6.ip == 1",
        "daddr_v6.ip == 10.0.0.0/33",
        "daddr_v6.ip == localhost",
        "daddr_v6.ip < ::1",
        "daddr_v6.ip ==",
        "common_pid.ip == 1.2.3.4",
    ] {
        assert!(check_filter(&event, filter).is_err(), "{filter}");
    }
    assert_eq!(event.address().unwrap().name, "daddr_v6");
}

#[test]
fn strings_elsewhere() {
    let event = retransmit();
    assert_eq!(check_key(&event, "caller.string"), Ok(()));
    assert_eq!(check_key(&event, "caller.hex"), Ok(()));
    assert!(check_key(&event, "state.string").is_err());
    assert!(check_value(&event, "caller.string").is_err());
}

/// Strings passed to a system call by address are also fields of the event.
#[test]
fn addresses_of_texts() {
    let openat = Format::parse(include_str!("fixtures/events/syscalls/sys_enter_openat/format")).unwrap();
    for text in ["__filename_val", "filename.hex", "filename+1", "flags", "common_comm"] {
        assert_eq!(check_key(&openat, text), Ok(()), "{text}");
    }
    assert_eq!(check_value(&openat, "filename"), Ok(()));
    let problem = check_keys(&openat, "flags, filename").unwrap_err();
    assert_eq!(
        (problem.at, problem.label.as_str()),
        (7..15, "did you mean __filename_val?")
    );
    // The kernel would read kernel memory at that address.
    let problem = check_keys(&openat, "filename.string").unwrap_err();
    assert_eq!(problem.label, "did you mean __filename_val?");
    for filter in ["filename ~ \"/etc/*\"", "flags == 1 && filename == \"/etc\""] {
        let problem = check_filter(&openat, filter).unwrap_err();
        assert_eq!(problem.label, "did you mean __filename_val?", "{filter}");
    }
    for filter in [
        "filename.ustring ~ \"/etc/*\"",
        "__filename_val ~ \"/etc/*\"",
        "filename == 1",
    ] {
        assert_eq!(check_filter(&openat, filter), Ok(()), "{filter}");
    }
    // Older kernels lack the field.
    let mut older = openat;
    older.fields.retain(|field| field.name != "__filename_val");
    assert_eq!(check_key(&older, "filename"), Ok(()));
    assert_eq!(check_filter(&older, "filename ~ \"/etc/*\""), Ok(()));
}

#[test]
fn good_values() {
    for text in [
        "next_prio",
        "(next_prio-prev_prio).dist=5",
        "$lat",
        "prev_state.max",
        "hitcount.percent",
    ] {
        assert_eq!(check_value(&switch(), text), Ok(()), "{text}");
    }
}

#[test]
fn good_filters() {
    for text in [
        "prev_pid == 1",
        "prev_state == 0 || prev_state == 256",
        "!(prev_comm ~ \"cat*\" && next_prio<-1) || common_cpu & CPUS{0-3,8}",
        "COMM != 'x y' && CPU == 0x1f",
        "next_comm == \"a || b\"",
    ] {
        assert_eq!(check_filter(&switch(), text), Ok(()), "{text}");
    }
    assert_eq!(check_filter(&kmalloc(), "call_site.function == vfs_read"), Ok(()));
}

fn lies_in(text: &str, problem: &Problem) -> bool {
    text.get(problem.at.clone()).is_some() && !problem.title.is_empty()
}

/// Texts made of the words of the language.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "next_pid|prev_comm|common_stacktrace|hex|sym-offset|log2|buckets|dist|foo|é|[$]x|CPUS",
        "[-+*/().,=<>&|!~{} ]|==|&&|[|][|]",
        "[0-9]{1,3}|0x1f|10ms|'a b'|\"",
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn problems_lie_in_the_text(text in words()) {
        for check in [check_key, check_keys, check_value, check_filter] {
            if let Err(problem) = check(&switch(), &text) {
                prop_assert!(lies_in(&text, &problem), "{:?}", problem);
            }
        }
    }

    #[test]
    fn deep_parentheses_are_no_matter(depth in 1usize..10_000) {
        let text = format!("{}prev_pid == 1{}", "(".repeat(depth), ")".repeat(depth));
        prop_assert_eq!(check_filter(&switch(), &text), Ok(()));
        prop_assert!(check_filter(&switch(), &text[1..]).is_err());
        prop_assert_eq!(check_key(&switch(), &"(".repeat(depth)).is_err(), true);
    }
}

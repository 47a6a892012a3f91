// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tries everything in a process that is confined.

use std::env;
use std::fs;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use rustix::process::Pid;
use rustix::process::getppid;
use rustix::process::kill_process;

use super::*;

/// Names the deed of [`deed()`] in its process.
const DEED: &str = "RHIST_TEST_DEED";

/// The first try that succeeds, of all that a confined process must not do.
fn succeeds(parent: Option<Pid>, other: &mut io::PipeReader, has_filter: bool) -> Option<&'static str> {
    let more_files = Rlimit {
        current: Some(9),
        maximum: Some(9),
    };
    let tries = [
        ("opens", File::open("/proc/self/status").is_ok()),
        ("opens a folder", fs::read_dir("/").is_ok()),
        ("creates", File::create("/tmp/rhist-confined").is_ok()),
        ("connects", TcpStream::connect("127.0.0.1:9").is_ok()),
        ("listens", TcpListener::bind("127.0.0.1:0").is_ok()),
        ("sends", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("has sockets", UnixStream::pair().is_ok()),
        ("has a pipe", io::pipe().is_ok()),
        ("starts", Command::new("/bin/true").spawn().is_ok()),
        ("has a thread", std::thread::Builder::new().spawn(|| ()).is_ok()),
        (
            "has memory",
            Vec::<u8>::new().try_reserve_exact(MEMORY as usize).is_ok(),
        ),
        ("has files", setrlimit(Resource::Nofile, more_files).is_ok()),
        (
            "has rights",
            thread::capabilities(None).is_ok_and(|sets| !sets.permitted.is_empty()),
        ),
    ];
    let filtered = match has_filter {
        false => Vec::new(),
        true => vec![
            ("reads", other.read(&mut [0]).is_ok()),
            ("looks", fs::metadata("/").is_ok()),
            (
                "sends a signal",
                parent.is_some_and(|parent| kill_process(parent, Signal::CONT).is_ok()),
            ),
        ],
    };
    let mut all = tries.into_iter().chain(filtered);
    all.find_map(|(name, is_done)| is_done.then_some(name))
}

/// Runs in a process of its own: [`run()`].
#[test]
#[ignore = "ends its process"]
fn deed() {
    let Ok(deed) = env::var(DEED) else { return };
    let (mut other, end) = io::pipe().unwrap();
    drop(end);
    let parent = getppid();
    let has_filter = deed != "tries without a filter";
    limit(1).unwrap();
    give_up_rights().unwrap();
    if has_filter {
        filter().unwrap();
    }
    match deed.as_str() {
        "computes" => loop {
            black_box(0);
        },
        "allocates" => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(vec![1; 1 << 20]);
            }
        }
        "reads and writes" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).unwrap();
            print!("{text}");
        }
        _ => println!("{}", succeeds(parent, &mut other, has_filter).unwrap_or("harmless")),
    }
    io::stdout().flush().unwrap();
    process::exit(0);
}

fn run(deed: &str) -> Output {
    let (input, mut end) = io::pipe().unwrap();
    end.write_all(b"an image\n").unwrap();
    drop(end);
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "confinement::tests::deed",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DEED, deed)
        .stdin(input)
        .stderr(Stdio::null());
    command.output().unwrap()
}

/// The last line of its output.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn it_reads_its_input_and_writes_its_output() {
    let output = run("reads and writes");
    assert!(said(&output).ends_with("an image"), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn it_can_do_nothing_else() {
    for deed in ["tries", "tries without a filter"] {
        let output = run(deed);
        assert!(said(&output).ends_with("harmless"), "{deed}: {output:?}");
    }
}

#[test]
fn time_is_limited() {
    let output = run("computes");
    let signal = output.status.signal();
    assert!(matches!(signal, Some(libc::SIGXCPU | libc::SIGKILL)), "{output:?}");
}

#[test]
fn memory_is_limited() {
    let output = run("allocates");
    assert!(output.status.signal().is_some(), "{output:?}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs `rhist unwind`, and feeders with the program, on a folder that looks like the module's.

#[path = "unwind/names.rs"]
mod names;
mod patience;

use std::fs;
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use patience::PATIENCE;
use patience::wait_until;
use rhist_feeder::Feeder;
use rhist_feeder::Settings;
use rhist_feeder::Summary;
use rhist_feeder::Until;
use rhist_unwind::compile;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

const RHIST: &str = env!("CARGO_BIN_EXE_rhist");

/// A program with unwind information.
const PROGRAM: &str = "/bin/sh";

/// A tracing directory with objects.
struct Tracing(tempfile::TempDir);

impl Tracing {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["events", "user_objects"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        // Makes it look like the module's.
        fs::write(root.path().join("hist_stats"), "").unwrap();
        let tracing = Self(root);
        tracing.list(&[]);
        tracing
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("user_objects")
    }

    fn at(&self, number: u32, file: &str) -> PathBuf {
        self.folder().join(number.to_string()).join(file)
    }

    /// Writes the list: number and state of files.
    fn list(&self, objects: &[(u32, &str)]) {
        let mut text = "# number kind device inode generation size changed process state\n".to_owned();
        for (number, state) in objects {
            text += &match number {
                0 => format!("0 vdso - - - - - - {state}\n"),
                _ => format!("{number} file 8:1 {number} 0 1 2 - {state}\n"),
            };
        }
        text += "99 memory - - - - - 1 released\n";
        // In place, as a feeder keeps it open.
        let mut list = File::options();
        let list = list.write(true).create(true).truncate(false);
        let mut list = list.open(self.folder().join("list")).unwrap();
        list.write_all(text.as_bytes()).unwrap();
        list.set_len(text.len() as u64).unwrap();
    }

    /// Makes the folder of an object, with its empty rules.
    fn object(&self, number: u32) {
        fs::create_dir(self.folder().join(number.to_string())).unwrap();
        fs::write(self.at(number, "rules"), "").unwrap();
    }

    fn image(&self, number: u32, contents: impl AsRef<[u8]>) {
        self.object(number);
        fs::write(self.at(number, "image"), contents).unwrap();
    }

    fn link(&self, number: u32, path: &str) {
        self.object(number);
        symlink(fs::canonicalize(path).unwrap(), self.at(number, "image")).unwrap();
    }

    /// A file that does not answer.
    fn hanging(&self, number: u32) {
        self.object(number);
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, self.at(number, "image"), FileType::Fifo, mode, 0).unwrap();
    }

    fn rules(&self, number: u32) -> Vec<u8> {
        fs::read(self.at(number, "rules")).unwrap()
    }

    /// Makes a program of the shell that stands for the compiler.
    fn program(&self, script: &str) -> String {
        let path = self.0.path().join("compiler");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(RHIST);
        command.arg("unwind").args(options).env("RHIST_TRACEFS", self.0.path());
        command
    }

    fn once(&self) -> Output {
        self.command(&["--once", "-v"]).output().unwrap()
    }

    /// A feeder whose children may take this long, or a second while others wait.
    fn feeder(&self, program: &str, patience: Duration) -> Feeder {
        let settings = Settings {
            program: program.into(),
            patience,
            share: Duration::from_secs(1),
            ..Settings::default()
        };
        Feeder::new(&self.folder(), settings).unwrap()
    }
}

/// Runs a feeder until all was tried. Returns its news.
fn feed(feeder: &mut Feeder) -> Vec<String> {
    let (stop, _end) = io::pipe().unwrap();
    let mut told = Vec::new();
    feeder
        .run(stop.as_fd(), Until::Tried, &mut |news| told.push(news.to_string()))
        .unwrap();
    told
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn objects_get_the_rules_of_their_files() {
    let tracing = Tracing::new();
    tracing.link(1, PROGRAM);
    tracing.link(2, RHIST);
    tracing.link(3, PROGRAM);
    tracing.list(&[(1, "readable"), (2, "readable"), (3, "rules rows 1 bytes 2")]);
    let output = tracing.once();
    assert_eq!(text(&output.stderr), "");
    for (number, path) in [(1, PROGRAM), (2, RHIST)] {
        let expected = compile(&fs::read(path).unwrap()).unwrap();
        assert!(tracing.rules(number) == expected.to_bytes(), "{path}");
        let line = format!(
            "object {number} (device 8:1, inode {number}): {} rows, {} bytes\n",
            expected.row_count(),
            expected.size()
        );
        assert!(text(&output.stdout).contains(&line), "{output:?}");
    }
    assert!(tracing.rules(3).is_empty());
    let last = text(&output.stdout).lines().last().unwrap().to_owned();
    assert!(last.starts_with("3 objects: 2 given "), "{last}");
    assert!(last.ends_with(" bytes, 1 with rules before"), "{last}");
}

#[test]
fn the_vdso_is_read_from_memory() {
    let tracing = Tracing::new();
    tracing.object(0);
    tracing.list(&[(0, "released")]);
    let output = tracing.once();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    match maps.contains("[vdso]") {
        true => assert!(tracing.rules(0).starts_with(b"RUR1"), "{output:?}"),
        false => assert!(text(&output.stderr).contains("maps no vDSO"), "{output:?}"),
    }
}

#[test]
fn hostile_files_get_none() {
    let tracing = Tracing::new();
    let program = fs::read(PROGRAM).unwrap();
    let mut objects = Vec::new();
    let mut number = 0;
    let mut add = |add: &dyn Fn(u32)| {
        number += 1;
        add(number);
        objects.push((number, "readable"));
        number
    };
    // Each is refused, or gives rules; the command survives.
    let empty = add(&|number| tracing.image(number, ""));
    let words = add(&|number| tracing.image(number, "\x1b[2J".repeat(1000)));
    for len in [4, 63, 64, 200, 4096, program.len() / 2, program.len() - 1] {
        add(&|number| tracing.image(number, &program[..len]));
    }
    for seed in 1..20_u64 {
        let mut bytes = program.clone();
        let mut at = seed;
        for _ in 0..2000 {
            at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let place = (at >> 20) as usize % bytes.len();
            bytes[place] = (at >> 56) as u8;
        }
        bytes[..6].copy_from_slice(&program[..6]);
        add(&|number| tracing.image(number, &bytes));
    }
    let huge = add(&|number| {
        tracing.image(number, &program);
        File::options()
            .write(true)
            .open(tracing.at(number, "image"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
    });
    let endless = add(&|number| tracing.link(number, "/dev/zero"));
    let folder = add(&|number| tracing.link(number, "/"));
    tracing.list(&objects);
    let output = tracing.once();
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    for (number, why) in [
        (empty, "not an ELF file"),
        (words, "not an ELF file"),
        (huge, "larger than 384 MiB"),
        (endless, "cannot be read: out of memory"),
        (folder, "cannot be read: Is a directory (os error 21)"),
    ] {
        let line = format!("rhist: object {number} (device 8:1, inode {number}): {why}\n");
        assert!(said.contains(&line), "{line}{said}");
        assert!(tracing.rules(number).is_empty());
    }
    assert!(!said.contains('\x1b'));
}

/// Files that answer neither `open()` nor `read()`.
#[test]
fn files_that_do_not_answer_delay_no_other() {
    let tracing = Tracing::new();
    tracing.hanging(1);
    tracing.hanging(2);
    let _opened = File::options()
        .read(true)
        .write(true)
        .open(tracing.at(2, "image"))
        .unwrap();
    tracing.link(3, PROGRAM);
    tracing.link(4, PROGRAM);
    tracing.list(&[1, 2, 3, 4].map(|number| (number, "readable")));
    let mut feeder = tracing.feeder(RHIST, Duration::from_secs(5));
    let told = feed(&mut feeder);
    assert_eq!(told.len(), 4, "{told:?}");
    let mut first = told[..2].to_vec();
    first.sort();
    assert!(
        first[0].starts_with("object 3 ") && first[1].starts_with("object 4 "),
        "{told:?}"
    );
    for number in [1, 2] {
        let line = format!("object {number} (device 8:1, inode {number}): not read after 5 s");
        assert!(told[2..].contains(&line), "{told:?}");
    }
    let Summary { fed, failed, .. } = feeder.summary();
    assert_eq!((fed, failed), (2, 2));
}

#[test]
fn a_compiler_is_not_trusted() {
    for (script, why) in [
        ("exit 0", "the compiler made no table"),
        ("printf RUR1; exit 0", "the compiler made no table"),
        ("cat /dev/zero", "the compiler made too much output"),
        ("printf '\\033[2Jno\\n'; exit 1", "?[2Jno"),
        ("exit 9", "the compiler ended with status 9"),
        ("kill -SEGV $$", "the compiler died of signal 11"),
        ("exec >&-; sleep 100", "not read after 2 s"),
        ("while :; do echo; sleep 0.1; done", "not read after 2 s"),
    ] {
        let tracing = Tracing::new();
        tracing.image(1, "");
        tracing.list(&[(1, "readable")]);
        let program = tracing.program(script);
        let mut feeder = tracing.feeder(&program, Duration::from_secs(2));
        let told = feed(&mut feeder);
        assert_eq!(told, [format!("object 1 (device 8:1, inode 1): {why}")], "{script}");
        assert!(tracing.rules(1).is_empty());
    }
    let tracing = Tracing::new();
    tracing.image(1, "");
    tracing.list(&[(1, "readable")]);
    let told = feed(&mut tracing.feeder("/nowhere", PATIENCE));
    assert!(told[0].contains("cannot be started: No such file"), "{told:?}");
}

/// A file that is released is tried again when the list says that it is readable.
#[test]
fn files_that_appear_later() {
    let tracing = Tracing::new();
    tracing.object(1);
    tracing.list(&[(1, "released")]);
    let mut child = tracing.command(&["-v"]).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none());
    symlink(fs::canonicalize(PROGRAM).unwrap(), tracing.at(1, "image")).unwrap();
    tracing.link(2, PROGRAM);
    tracing.list(&[(1, "readable"), (2, "readable")]);
    let size = compile(&fs::read(PROGRAM).unwrap()).unwrap().size();
    wait_until(|| [1, 2].iter().all(|number| tracing.rules(*number).len() == size));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        shown.starts_with("object 1 (device 8:1, inode 1): not readable until the next hit\n"),
        "{shown}"
    );
    assert!(shown.contains("\n2 objects: 2 given "), "{shown}");
}

#[test]
fn once_does_not_wait_for_a_hit() {
    let tracing = Tracing::new();
    tracing.object(1);
    tracing.list(&[(1, "released")]);
    let output = tracing.once();
    let expected = "object 1 (device 8:1, inode 1): not readable until the next hit\n\
                    1 object: 0 given 0 rows in 0 bytes, 1 not readable until the next hit\n";
    assert_eq!(text(&output.stdout), expected);
}

/// A feeder waits, and does not poll all the time, although a file is always readable.
#[test]
fn waiting_costs_little() {
    let tracing = Tracing::new();
    let mut child = tracing.command(&[]).stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    // User and system time, in 1/100 s.
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(ticks < 50, "{ticks}");
}

/// An object whose number has been given to another one meanwhile does not get the rules.
#[test]
fn a_number_may_change_its_object() {
    let tracing = Tracing::new();
    tracing.link(1, PROGRAM);
    tracing.list(&[(1, "readable")]);
    let table = compile(&fs::read(PROGRAM).unwrap()).unwrap();
    fs::write(tracing.0.path().join("table"), table.to_bytes()).unwrap();
    let program = tracing.program(&format!(
        "cd '{}'; sed 's/ 8:1 1 / 8:1 77 /' user_objects/list >new; cat new >user_objects/list; cat table",
        tracing.0.path().display()
    ));
    let mut feeder = tracing.feeder(&program, PATIENCE);
    let told = feed(&mut feeder);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "object 1 (device 8:1, inode 1): the object is gone");
    assert!(told[1].starts_with("object 1 (device 8:1, inode 77): "), "{told:?}");
    assert!(tracing.rules(1) == table.to_bytes());
}

#[test]
fn a_module_without_objects() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("events")).unwrap();
    let run = |root: &Path| {
        let mut command = Command::new(RHIST);
        let output = command
            .args(["unwind", "--once"])
            .env("RHIST_TRACEFS", root)
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = run(root.path());
    assert_eq!(
        (code, said.as_str()),
        (Some(2), "rhist: the module is not loaded: modprobe rhist\n")
    );
    fs::write(root.path().join("hist_stats"), "").unwrap();
    let (code, said) = run(root.path());
    assert_eq!(code, Some(2));
    assert!(
        said.ends_with("user_objects: this module takes no stacks of programs\n"),
        "{said}"
    );
}

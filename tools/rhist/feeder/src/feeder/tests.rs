// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files with debugging information, which only root could install where they are looked for. The
//! children are programs of the shell.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::process;

use rhist_symbols::Symbols;

use super::*;
use crate::list;

/// Writes a folder with an object, a program that stands for children, and two tables: of one name,
/// and of no name.
fn scene(script: &str) -> (tempfile::TempDir, Settings) {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("objects/1")).unwrap();
    fs::write(at("objects/list"), "1 file 8:1 7 0 1 2 - readable\n").unwrap();
    fs::write(at("objects/1/rules"), "").unwrap();
    let mut table = b"RUN1".to_vec();
    let words = [2, 1, 1, 4, 0, 8, 0, 0, 4_u32];
    table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    table.extend(b"more\xab\xcd");
    fs::write(at("more"), [b"\x02sh", &table[..]].concat()).unwrap();
    let empty = NameTable::write(&Symbols::default(), &[0xab, 0xcd]).unwrap();
    fs::write(at("first"), [b"\x02sh", &empty[..]].concat()).unwrap();
    let script = format!(
        "#!/bin/sh\ncd '{}'\n[ \"$1\" = names ] || exit 1\n{script}\n",
        root.path().display()
    );
    fs::write(at("child"), script).unwrap();
    fs::set_permissions(at("child"), fs::Permissions::from_mode(0o700)).unwrap();
    let settings = Settings {
        program: at("child"),
        patience: Duration::from_secs(60),
        names: Some(Names::default()),
        ..Settings::default()
    };
    (root, settings)
}

/// Runs a feeder until all objects were tried. Returns the news.
fn run(feeder: &mut Feeder) -> Vec<String> {
    let (stop, _end) = io::pipe().unwrap();
    let mut news = Vec::new();
    let mut tell = |one: News<'_>| news.push(one.to_string());
    feeder.run(stop.as_fd(), Until::Tried, &mut tell).unwrap();
    news
}

/// Runs a feeder that finds `/debug` for the right build. Returns the news and a frame.
fn feed(script: &str) -> (Vec<String>, String) {
    let (root, settings) = scene(script);
    let names = settings.names.clone().unwrap();
    let mut feeder = Feeder::new(&root.path().join("objects"), settings).unwrap();
    feeder.find_debug = |id| (id == [0xab, 0xcd]).then(|| "/debug".into());
    assert!(names.are_awaited());
    let mut news = run(&mut feeder);
    assert!(!names.are_awaited());
    // The first one is about the rules.
    let news = news.split_off(1);
    (news, names.frame(1, 3, true))
}

#[test]
fn debugging_information_has_more_names() {
    let script = "case \"$3 $4 $5\" in '8:1 7 /debug') cat more;; '8:1 7 ') cat first;; esac";
    assert_eq!(feed(script), (vec![], "more+0x3".to_owned()));
}

#[test]
fn a_failure_keeps_the_first_names() {
    for (script, why) in [
        (
            "case $5 in /debug) printf '\\0it fails'; exit 1;; esac; cat more",
            "it fails",
        ),
        ("case $5 in /debug) exit 0;; esac; cat more", "the reader made no table"),
        (
            "case $5 in /debug) kill -SEGV $$;; esac; cat more",
            "the reader died of signal 11",
        ),
    ] {
        let line = format!("object 1 (device 8:1, inode 7): more names: {why}");
        assert_eq!(feed(script), (vec![line], "more+0x3".to_owned()));
    }
}

/// The search for the name of a file may hang, which is done before anything is written.
#[test]
fn a_search_that_hangs_is_left_out() {
    let (root, settings) = scene("case $3 in -) exec cat more;; esac; exec sleep 100");
    let settings = Settings {
        patience: Duration::from_secs(2),
        share: Duration::from_secs(1),
        ..settings
    };
    let names = settings.names.clone().unwrap();
    let mut feeder = Feeder::new(&root.path().join("objects"), settings).unwrap();
    let count = run(&mut feeder).len();
    // The rules fail, and nothing else.
    assert_eq!((count, names.frame(1, 3, true)), (1, "more+0x3".to_owned()));
}

#[test]
fn names_of_all_files_are_limited() {
    const LEN: usize = 16_000;
    let count = (NameTable::MOST_BYTES - 100) / (LEN + 20);
    let (root, settings) = scene(&format!(
        "cat head; head -c {} /dev/zero | tr '\\0' \"$4\"",
        count * LEN
    ));
    let mut head = b"\x02shRUN1".to_vec();
    let mut words = |words: &[usize]| head.extend(words.iter().flat_map(|word| (*word as u32).to_le_bytes()));
    words(&[0, count, count, count * LEN]);
    (0..count).for_each(|at| words(&[at, at + 1, 0, at]));
    (1..=count).for_each(|at| words(&[at * LEN]));
    fs::write(root.path().join("head"), head).unwrap();
    let list = "12345"
        .chars()
        .map(|at| format!("{at} file 8:1 {at} 0 1 2 - rules,readable\n"));
    fs::write(root.path().join("objects/list"), list.collect::<String>()).unwrap();
    let names = settings.names.clone().unwrap();
    let mut feeder = Feeder::new(&root.path().join("objects"), settings).unwrap();
    let news = run(&mut feeder);
    let [line] = &news[..] else { panic!("{news:?}") };
    assert!(
        line.ends_with("): names: all names would take more than 128 MiB"),
        "{line}"
    );
    let frames = (1..=5).map(|object| names.frame(object, 0, true));
    let shown: Vec<String> = frames.map(|frame| frame[..3].to_owned()).collect();
    assert_eq!(shown.iter().filter(|frame| *frame == "sh+").count(), 1, "{shown:?}");
    for frame in ["111", "222", "333"] {
        assert!(shown.iter().any(|shown| shown == frame), "{shown:?}");
    }
}

#[test]
fn only_files_of_root_are_trusted() {
    let is_trusted = |path: &str| is_trusted(&fs::metadata(path).unwrap());
    assert!(is_trusted("/bin/sh"));
    assert!(!is_trusted("/usr/lib") && !is_trusted("/dev/null"));
    let file = tempfile::NamedTempFile::new().unwrap();
    // Another user has it already, unless this one is root.
    let _ = chown(file.path(), Some(65534), None);
    let is_others = fs::metadata(file.path()).unwrap();
    assert!(!is_trusted(file.path().to_str().unwrap()), "{is_others:?}");
    assert_eq!(debug_file(&[0xab; 20]), None);
}

/// Runs a feeder whose list has code of a process without a file. Returns the news and a frame.
fn feed_memory(begin: &str, script: &str) -> (Vec<String>, String) {
    let (root, settings) = scene(script);
    let process = process::id();
    let list = format!("# number kind process begin state\n1 memory {process} {begin} released\n");
    fs::write(root.path().join("objects/list"), list).unwrap();
    let names = settings.names.clone().unwrap();
    let mut feeder = Feeder::new(&root.path().join("objects"), settings).unwrap();
    let news = run(&mut feeder);
    assert_eq!(feeder.summary().objects, 0, "it gets no rules");
    let is_again = feeder.objects.values().all(|known| known.again.is_some());
    assert!(is_again, "more names may come");
    (news, names.frame(1, 3, true))
}

#[test]
fn names_of_code_that_a_process_makes() {
    let process = process::id();
    let start = map_file::start(process).unwrap();
    let script =
        format!("[ \"$*\" = 'names memory {process} 7f0000001000 {start}' ] && {{ printf '\\0'; tail -c +4 more; }}");
    let script = script.as_str();
    assert_eq!(feed_memory("7f0000001000", script), (vec![], "more+0x3".to_owned()));
    let unknown = || format!("[memory of {process}]+0x3");
    // Without the right to see where it is.
    assert_eq!(feed_memory("-", script), (vec![], unknown()));
    // It lacks a map, or has ended: nobody has to know.
    assert_eq!(feed_memory("1000", "printf '\\0'; exit 3"), (vec![], unknown()));
    let why = format!("object 1 (memory of {process}): names: it is too long");
    let failing = "printf '\\0it is too long'; exit 1";
    assert_eq!(feed_memory("1000", failing), (vec![why], unknown()));
}

#[test]
fn memory_of_processes_that_have_ended_takes_no_time() {
    let (root, settings) = scene("exit 3");
    let mut feeder = Feeder::new(&root.path().join("objects"), settings).unwrap();
    let mut child = process::Command::new("sleep").arg("100").spawn().unwrap();
    let list = |process: u32| format!("# number kind process begin state\n1 memory {process} 1000 released\n");
    let objects = list::parse(&list(child.id()));
    assert_eq!(feeder.living(&objects, 0).len(), 0);
    assert_eq!(feeder.living(&objects, 1).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(feeder.living(&objects, 1).len(), 0);
    // Another process has the number.
    feeder.processes.insert(objects[0].identity.clone(), Some(u64::MAX));
    let objects = list::parse(&list(process::id()));
    feeder.processes.insert(objects[0].identity.clone(), Some(u64::MAX));
    assert_eq!(feeder.living(&objects, 1).len(), 0);
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of functions, which feeders read with the program.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::time::Instant;

use rhist_feeder::FeederThread;
use rhist_feeder::Names;

use super::*;

fn settings(program: &str, patience: Duration) -> Settings {
    Settings {
        program: program.into(),
        patience,
        share: Duration::from_secs(1),
        names: Some(Names::default()),
    }
}

/// Runs a feeder with names until all was tried. Returns its news, without a line for each object
/// that was given rules, and the names.
fn named(tracing: &Tracing, program: &str, patience: Duration) -> (Vec<String>, Names) {
    let settings = settings(program, patience);
    let names = settings.names.clone().unwrap();
    let mut told = feed(&mut Feeder::new(&tracing.folder(), settings).unwrap());
    told.retain(|line| !line.ends_with(" bytes"));
    (told, names)
}

/// Runs the child for names. Returns its exit status and all that it writes.
fn child(arguments: &[&str]) -> (Option<i32>, Vec<u8>) {
    let mut command = Command::new(RHIST);
    let output = command
        .arg0("rhist-compiler")
        .arg("names")
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), output.stdout)
}

/// The C library that this program has mapped.
fn c_library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().find_map(|line| {
        line.split_whitespace()
            .nth(5)
            .filter(|path| path.ends_with("/libc.so.6"))
    });
    path.unwrap().to_owned()
}

/// The output of a program of binutils; `None` if that is missing.
fn binutils(program: &str, options: &[&str], path: &str) -> Option<String> {
    let output = Command::new(program).args(options).arg(path).output();
    match output {
        Ok(output) => Some(text(&output.stdout)),
        Err(_) => {
            eprintln!("SKIP: {program} is not installed");
            None
        }
    }
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Executable segments: addresses, and the offset in the file.
fn segments(path: &str) -> Option<Vec<(Range<u64>, u64)>> {
    let row = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["LOAD", offset, address, _, size, _, ref flags @ .., _] if flags.contains(&"E") => {
            Some((hex(address)..hex(address) + hex(size), hex(offset)))
        }
        _ => None,
    };
    Some(binutils("readelf", &["-lW"], path)?.lines().filter_map(row).collect())
}

/// Functions by nm, by offset in the file: size and names.
fn functions(path: &str) -> Option<HashMap<u64, Vec<(u64, String)>>> {
    let segments = segments(path)?;
    let mut functions: HashMap<u64, Vec<(u64, String)>> = HashMap::new();
    for line in binutils("nm", &["-D", "-S", "--defined-only"], path)?.lines() {
        let [address, size, "T" | "t" | "W" | "i", name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            continue;
        };
        let (address, size) = (hex(address), hex(size));
        if let Some((addresses, offset)) = segments.iter().find(|(addresses, _)| addresses.contains(&address)) {
            let name = name.split_once('@').map_or(name, |(name, _)| name);
            let functions = functions.entry(address - addresses.start + offset).or_default();
            functions.push((size, name.to_owned()));
        }
    }
    Some(functions)
}

#[test]
fn functions_of_the_c_library() {
    let path = c_library();
    let Some(functions) = functions(&path) else {
        return;
    };
    let tracing = Tracing::new();
    tracing.link(1, &path);
    tracing.list(&[(1, "readable")]);
    let (told, names) = named(&tracing, RHIST, PATIENCE);
    assert!(told.is_empty(), "{told:?}");
    let mut sizes = 0;
    for (&start, aliases) in &functions {
        let is_alias =
            |frame: &str, distance: u64| aliases.iter().any(|(_, name)| frame == format!("{name}+{distance:#x}"));
        let frame = names.frame(1, start, true);
        assert!(is_alias(&frame, 0), "{frame} for {aliases:?}");
        let frame = names.frame(1, start + 1, false);
        assert!(is_alias(&frame, 1), "{frame} for {aliases:?}");
        // A call that does not return may be the last instruction.
        let size = aliases.iter().map(|alias| alias.0).max().unwrap();
        if size > 0 && (start + 1..start + size).all(|offset| !functions.contains_key(&offset)) {
            let frame = names.frame(1, start + size, false);
            assert!(is_alias(&frame, size), "{frame} for {aliases:?}");
            sizes += 1;
        }
    }
    assert!(
        functions.len() > 1000 && sizes > 1000,
        "{} functions, {sizes} sizes",
        functions.len()
    );
}

#[test]
fn files_without_functions_and_code_without_files() {
    let tracing = Tracing::new();
    tracing.link(1, PROGRAM);
    tracing.object(0);
    // Not a program, but it has a name. Its rules fail for the same reason, which is given once.
    let script = tracing.program("exit");
    tracing.link(2, &script);
    tracing.list(&[(0, "rules"), (1, "rules,readable"), (2, "readable")]);
    let (told, names) = named(&tracing, RHIST, PATIENCE);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let failed = "object 2 (device 8:1, inode 2): not an ELF file".to_owned();
    match maps.contains("[vdso]") {
        true => {
            assert_eq!(names.frame(0, 0, true), "[vdso]+0x0");
            assert_eq!(told, [failed]);
        }
        false => assert!(told.contains(&failed), "{told:?}"),
    }
    let program = fs::canonicalize(PROGRAM).unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    assert_eq!(names.frame(1, 0, true), format!("{program}+0x0"));
    assert_eq!(names.frame(2, 0x77, false), "compiler+0x77");
    assert_eq!(names.frame(99, 0x12, false), "[memory of 1]+0x12");
    assert_eq!(names.frame(12, 0x9a1d, false), "[object 12]+0x9a1d");
}

/// The module's `image` does not lead to the file, so its name is the one that a process has mapped
/// it by.
#[test]
fn the_name_of_a_file_that_is_mapped() {
    let path = c_library();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with(&path)).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (major, minor) = words[3].split_once(':').unwrap();
    let tracing = Tracing::new();
    tracing.image(1, fs::read(&path).unwrap());
    let image = tracing.at(1, "image");
    let device = format!("{}:{}", hex(major), hex(minor));
    let (status, output) = child(&[image.to_str().unwrap(), &device, words[4]]);
    assert!(status == Some(0) && output.starts_with(b"\x09libc.so.6RUN1"));
    let (status, output) = child(&[image.to_str().unwrap(), &device, "none"]);
    assert!(status == Some(0) && output.starts_with(b"\0RUN1"));
}

#[test]
fn names_outlive_programs() {
    let path = c_library();
    let Some(functions) = functions(&path) else {
        return;
    };
    let &[(&start, _), ..] = &functions.iter().collect::<Vec<_>>()[..] else {
        panic!("no functions");
    };
    let tracing = Tracing::new();
    tracing.link(1, &path);
    tracing.image(2, "");
    tracing.list(&[(1, "readable"), (2, "readable")]);
    let settings = settings(RHIST, PATIENCE);
    let names = settings.names.clone().unwrap();
    let thread = FeederThread::start(&tracing.folder(), settings).unwrap();
    assert!(names.are_awaited());
    thread.settle(PATIENCE);
    assert!(!names.are_awaited());
    assert_eq!(
        thread.take_failures(),
        ["object 2 (device 8:1, inode 2): not an ELF file"]
    );
    let frame = names.frame(1, start, true);
    assert!(frame.ends_with("+0x0") && !frame.starts_with("libc"), "{frame}");
    // All files are gone, and then the object, too. Another one comes.
    fs::remove_file(tracing.at(1, "image")).unwrap();
    tracing.link(3, &path);
    tracing.list(&[(3, "readable")]);
    thread.settle(PATIENCE);
    assert_eq!(names.frame(3, start, true), frame);
    assert_eq!(names.frame(1, start, true), frame);
    drop(thread);
    assert_eq!(names.frame(1, start, true), frame);
}

#[test]
fn many_failures_are_counted() {
    let tracing = Tracing::new();
    let objects: Vec<(u32, &str)> = (1..=25).map(|number| (number, "readable")).collect();
    objects.iter().for_each(|(number, _)| tracing.image(*number, ""));
    tracing.list(&objects);
    let settings = settings("/bin/false", PATIENCE);
    let thread = FeederThread::start(&tracing.folder(), settings).unwrap();
    thread.settle(PATIENCE);
    let failures = thread.take_failures();
    assert_eq!(
        (failures.len(), failures[20].as_str()),
        (21, "and 5 more"),
        "{failures:?}"
    );
}

/// A thread whose list is gone does not let others wait, and says why.
#[test]
fn a_feeder_that_has_ended() {
    let tracing = Tracing::new();
    tracing.hanging(1);
    tracing.list(&[(1, "readable")]);
    let settings = settings(RHIST, PATIENCE);
    let names = settings.names.clone().unwrap();
    let thread = FeederThread::start(&tracing.folder(), settings.clone()).unwrap();
    let begin = Instant::now();
    thread.settle(Duration::from_millis(300));
    assert!((300..5000).contains(&begin.elapsed().as_millis()) && names.are_awaited());
    // It stops though a child hangs.
    drop(thread);
    assert!(begin.elapsed() < Duration::from_secs(10) && !names.are_awaited());
    // A folder in place of the list can be opened, but not read.
    fs::remove_file(tracing.folder().join("list")).unwrap();
    fs::create_dir(tracing.folder().join("list")).unwrap();
    let thread = FeederThread::start(&tracing.folder(), settings.clone()).unwrap();
    thread.settle(PATIENCE);
    let failures = thread.take_failures();
    assert_eq!(
        failures,
        ["the list of objects cannot be read: Is a directory (os error 21)"]
    );
    fs::remove_dir(tracing.folder().join("list")).unwrap();
    let error = FeederThread::start(&tracing.folder(), settings).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(!names.are_awaited());
}

#[test]
fn names_wait_for_a_hit() {
    let path = c_library();
    let tracing = Tracing::new();
    tracing.object(1);
    // Another feeder has made its rules.
    tracing.list(&[(1, "rules")]);
    let settings = settings(RHIST, PATIENCE);
    let names = settings.names.clone().unwrap();
    let thread = FeederThread::start(&tracing.folder(), settings).unwrap();
    let begin = Instant::now();
    thread.settle(PATIENCE);
    // A hit may come soon, but need not.
    assert!(begin.elapsed() < Duration::from_secs(20) && !names.are_awaited());
    assert_eq!(names.frame(1, 0, true), "[object 1]+0x0");
    symlink(&path, tracing.at(1, "image")).unwrap();
    tracing.list(&[(1, "rules,readable")]);
    wait_until(|| names.frame(1, 0, true) == "libc.so.6+0x0");
    assert!(thread.take_failures().is_empty());
    assert!(tracing.rules(1).is_empty());
}

#[test]
fn a_reader_of_names_is_not_trusted() {
    let shown = "a\\u{1b}b+0x1";
    for (script, why, frame) in [
        ("exit 0", "the reader made no table", "[object 1]+0x1"),
        ("printf RUN1", "the reader made no table", "UN1+0x1"),
        ("printf '\\003a\\033b'", "the reader made no table", shown),
        ("printf '\\003a\\033bRUN1'", "the reader made no table", shown),
        ("printf '\\003a\\033b'; cat table", "the reader made no table", shown),
        (
            "printf '\\003a\\033b'; cat /dev/zero",
            "the reader made too much output",
            shown,
        ),
        ("printf '\\003a\\033b\\033[2Jno\\n'; exit 1", "?[2Jno", shown),
        (
            "printf '\\003a\\033b'; kill -SEGV $$",
            "the reader died of signal 11",
            shown,
        ),
        (
            "printf '\\003a\\033b'; kill -ABRT $$",
            "the reader gave up: its memory is limited",
            shown,
        ),
        ("printf '\\003a\\033b'; sleep 100", "not read after 2 s", shown),
        ("printf '\\377a'; exit 9", "the reader ended with status 9", "a+0x1"),
    ] {
        let tracing = Tracing::new();
        tracing.image(1, "");
        tracing.list(&[(1, "readable")]);
        let table = compile(&fs::read(PROGRAM).unwrap()).unwrap().to_bytes();
        fs::write(tracing.0.path().join("table"), &table).unwrap();
        let folder = tracing.0.path().display();
        let program = tracing.program(&format!("cd '{folder}'; [ $# = 4 ] || exec cat table\n{script}"));
        let (told, names) = named(&tracing, &program, Duration::from_secs(2));
        assert_eq!(
            told,
            [format!("object 1 (device 8:1, inode 1): names: {why}")],
            "{script}"
        );
        assert_eq!(names.frame(1, 1, true), frame, "{script}");
        assert!(tracing.rules(1) == table);
    }
}

/// A file without rules has names all the same, and names come after the rules of the file.
#[test]
fn names_come_after_rules() {
    let tracing = Tracing::new();
    for number in 1..=4 {
        tracing.image(number, "");
    }
    tracing.list(&[1, 2, 3, 4].map(|number| (number, "readable")));
    let (_, output) = child(&[PROGRAM, "-", "-"]);
    fs::write(tracing.0.path().join("names"), output).unwrap();
    let program = tracing.program(&format!(
        "cd '{}'; echo $# >>order; [ $# = 4 ] && exec cat names; printf 'without rules'; exit 1",
        tracing.0.path().display()
    ));
    let (told, names) = named(&tracing, &program, PATIENCE);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|line| line.ends_with(": without rules")), "{told:?}");
    let order = fs::read_to_string(tracing.0.path().join("order")).unwrap();
    let (mut rules, mut names_read) = (0, 0);
    for line in order.lines() {
        *(if line == "1" { &mut rules } else { &mut names_read }) += 1;
        assert!(names_read <= rules, "{order}");
    }
    // Not all rules come first.
    assert_eq!((rules, names_read), (4, 4), "{order}");
    assert!(!order.ends_with("4\n4\n4\n4\n"), "{order}");
    let program = fs::canonicalize(PROGRAM).unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    for number in 1..=4 {
        assert_eq!(names.frame(number, 0, true), format!("{program}+0x0"));
    }
}

/// Names of an object whose number has been given to another one meanwhile are not the other's.
#[test]
fn names_when_a_number_changes_its_object() {
    let tracing = Tracing::new();
    tracing.image(1, "");
    tracing.list(&[(1, "rules,readable")]);
    let (_, output) = child(&[&c_library(), "-", "-"]);
    fs::write(tracing.0.path().join("names"), output).unwrap();
    let program = tracing.program(&format!(
        "cd '{}'; [ $4 = 1 ] || {{ printf '\\0no'; exit 1; }}
         sed 's/ 8:1 1 / 8:1 77 /' user_objects/list >new; cat new >user_objects/list; cat names",
        tracing.0.path().display()
    ));
    let (told, names) = named(&tracing, &program, PATIENCE);
    assert_eq!(
        told,
        [
            "object 1 (device 8:1, inode 1): names: the object is gone",
            "object 1 (device 8:1, inode 77): names: no"
        ]
    );
    assert_eq!(names.frame(1, 0, true), "[object 1]+0x0");
}

#[test]
fn hostile_names_are_escaped() {
    let path = c_library();
    let Some(functions) = functions(&path) else {
        return;
    };
    let mut places = functions.iter().filter(|(_, aliases)| aliases.len() == 1);
    let (&place, _) = places.find(|(_, aliases)| aliases[0].1 == "getenv").unwrap();
    let mut image = fs::read(&path).unwrap();
    // In the tables of symbols, perhaps as the end of a longer name.
    let (name, hostile) = (b"getenv\0", b"a\n\x1b;\xff \0");
    for at in 0..image.len() - name.len() {
        if image[at..].starts_with(name) {
            image[at..at + name.len()].copy_from_slice(hostile);
        }
    }
    let tracing = Tracing::new();
    tracing.image(1, &image);
    tracing.list(&[(1, "rules,readable")]);
    let (told, names) = named(&tracing, RHIST, PATIENCE);
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(names.frame(1, place, true), "a\\u{a}\\u{1b}:\\xff\\u{20}+0x0");
}

#[test]
fn files_that_hang_delay_no_names_of_others() {
    let tracing = Tracing::new();
    tracing.hanging(1);
    tracing.hanging(2);
    tracing.link(3, &c_library());
    tracing.list(&[1, 2, 3].map(|number| (number, "rules,readable")));
    let settings = settings(RHIST, Duration::from_secs(5));
    let names = settings.names.clone().unwrap();
    let thread = FeederThread::start(&tracing.folder(), settings).unwrap();
    let begin = Instant::now();
    wait_until(|| names.frame(3, 0, true) == "libc.so.6+0x0");
    assert!(begin.elapsed() < Duration::from_secs(5) && names.are_awaited());
    thread.settle(PATIENCE);
    let mut failures = thread.take_failures();
    failures.sort();
    let line = |number| format!("object {number} (device 8:1, inode {number}): names: not read after 5 s");
    assert_eq!(failures, [line(1), line(2)]);
}

#[test]
fn only_debugging_information_of_root_is_read() {
    let (status, alone) = child(&[PROGRAM, "-", "-"]);
    assert_eq!(status, Some(0));
    // The program itself has the same build id, and the same names.
    let (status, both) = child(&[PROGRAM, "-", "-", PROGRAM]);
    assert!(status == Some(0) && both == alone);
    let failure = |debug: &str| {
        let (status, said) = child(&[PROGRAM, "-", "-", debug]);
        assert_eq!(status, Some(1));
        let said = said.split_at(1 + usize::from(said[0])).1;
        text(said)
    };
    assert_eq!(
        failure(&c_library()),
        "the debugging information has not the build id of the file"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::copy(PROGRAM, file.path()).unwrap();
    // Another user has it already, unless this one is root.
    let _ = chown(file.path(), Some(65534), None);
    let path = file.path().to_str().unwrap();
    assert_eq!(failure(path), "debugging information that is not root's");
    assert_eq!(failure("/"), "debugging information that is not root's");
    assert!(failure("/nowhere").starts_with("cannot be opened: No such file"));
}

/// A process that has memory with code, and writes no map itself. Ends with its standard input.
const WITH_CODE: &str = "import mmap, sys
rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
code = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=rights)
print(flush=True)
sys.stdin.read()";

#[test]
fn maps_of_code_are_not_trusted() {
    let mut python = Command::new("python3");
    python
        .args(["-c", WITH_CODE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let Ok(mut process) = python.spawn() else {
        eprintln!("SKIP maps_of_code_are_not_trusted: python3 is not installed");
        return;
    };
    process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let pid = process.id();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps
        .lines()
        .find(|line| line.contains(" rwxp ") && line.ends_with(" 0 "))
        .unwrap();
    let begin = line.split('-').next().unwrap();
    let first = u64::from_str_radix(begin, 16).unwrap();

    let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    // Field 22: the name of python3 is one word.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.split(' ').nth(21).unwrap();
    let read = |begin: &str| child(&["memory", &pid.to_string(), begin, start]);
    let not_held = (Some(3), vec![0]);
    assert_eq!(read(begin), not_held, "nothing is there");
    fs::write(&map, format!("{first:x} 10 first\n{:x} 10 behind\n", first + 8192)).unwrap();
    let (status, table) = read(begin);
    assert_eq!(status, Some(0));
    assert!(table.ends_with(b"\x05\0\0\0first"), "{}", table.escape_ascii());
    assert_eq!(read("1000"), not_held, "other memory");
    let of_later = child(&["memory", &pid.to_string(), begin, &format!("{start}0")]);
    assert_eq!(of_later, not_held, "another process had the number");
    // Another user's, unless this one is not root.
    if chown(&map, Some(65534), None).is_ok() {
        assert_eq!(read(begin), not_held, "a file of another user");
        chown(&map, Some(0), None).unwrap();
        assert_eq!(read(begin).0, Some(0));
    }
    let other = map.with_extension("other");
    fs::rename(&map, &other).unwrap();
    symlink(&other, &map).unwrap();
    assert_eq!(read(begin), not_held, "a link");
    fs::remove_file(&map).unwrap();
    fs::remove_file(&other).unwrap();
    // To open it would wait for a writer.
    assert!(Command::new("mkfifo").arg(&map).status().unwrap().success());
    assert_eq!(read(begin), not_held, "a pipe");
    fs::remove_file(&map).unwrap();
    for wrong in [["memory", "x", "1000"], ["memory", "1", "x"]] {
        assert_eq!(child(&wrong).0, Some(1), "{wrong:?}");
    }
    drop(process.stdin.take());
    process.wait().unwrap();
    assert_eq!(read(begin), not_held, "it has ended");
}

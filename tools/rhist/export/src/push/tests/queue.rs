// SPDX-License-Identifier: MIT OR Apache-2.0

//! Damages queues in many ways, and checks the batches that are left.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

use super::batch;
use crate::push::Batch;
use crate::push::Encoding;
use crate::push::Limits;
use crate::push::Queue;

const URL: &str = "http://127.0.0.1:4318/v1/metrics";

const LIMITS: Limits = Limits {
    bytes: 8 * 4096,
    held: 40,
};

fn open(state: &Path) -> Queue {
    Queue::open(state, URL, LIMITS).unwrap()
}

/// The next batch to send.
fn front(queue: &mut Queue) -> Option<(u64, Batch)> {
    let (number, batch) = queue.next(Instant::now())?;
    Some((number, batch.unwrap()))
}

/// All batches in order.
fn drain(queue: &mut Queue) -> Vec<Batch> {
    let mut batches = Vec::new();
    while let Some((number, batch)) = front(queue) {
        queue.remove(number);
        batches.push(batch);
    }
    batches
}

#[test]
fn the_oldest_are_dropped() {
    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    for number in 0..20 {
        let added = queue.push(batch(number), None);
        assert_eq!(added.dropped, u64::from(number >= 8));
        assert!(added.held.is_none() && queue.bytes() <= LIMITS.bytes);
    }
    assert_eq!((queue.len(), queue.dropped()), (8, 12));
    // The batch in flight is not dropped.
    let (first, _) = front(&mut queue).unwrap();
    queue.push(batch(20), Some(first));
    let left: Vec<_> = [12, 14, 15, 16, 17, 18, 19, 20].into_iter().map(batch).collect();
    assert_eq!(drain(&mut queue), left);
}

#[test]
fn one_batch_is_larger_than_all_that_is_kept() {
    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    queue.push(batch(1), None);
    let large = Batch {
        encoding: Encoding::Json,
        body: vec![b'x'; 100_000],
    };
    let added = queue.push(large, None);
    assert_eq!((added.dropped, queue.len(), queue.bytes()), (2, 0, 0));
    assert_eq!(fs::read_dir(queue.folder().unwrap()).unwrap().count(), 0);
}

/// A file truncated anywhere, or with any byte changed, is skipped, and all others are read.
#[test]
fn files_are_cut_off_or_changed() {
    let whole = file_of(2);
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    let changed = (0..whole.len()).map(|place| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    });
    for bytes in cut.chain(changed) {
        let state = tempfile::tempdir().unwrap();
        let mut queue = open(state.path());
        (1..=3).for_each(|number| drop(queue.push(batch(number), None)));
        let file = queue.folder().unwrap().join(format!("{:020}", 2));
        drop(queue);
        fs::write(&file, &bytes).unwrap();
        let mut queue = open(state.path());
        assert_eq!(drain(&mut queue), [batch(1), batch(3)], "{bytes:?}");
        assert_eq!(queue.unreadable(), 1);
        assert!(!file.exists());
    }
}

/// Contents of the file of a batch.
fn file_of(number: u64) -> Vec<u8> {
    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    drop(queue.push(batch(number), None));
    fs::read(queue.folder().unwrap().join(format!("{:020}", 1))).unwrap()
}

#[test]
fn other_files_are_no_batches() {
    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    let folder = queue.folder().unwrap().to_owned();
    drop(queue.push(batch(1), None));
    drop(queue);
    let file = |number: u64| folder.join(format!("{number:020}"));
    for name in ["README", "5000", "+6000"] {
        fs::write(folder.join(name), file_of(9)).unwrap();
    }
    fs::write(file(u64::MAX), "x").unwrap();
    fs::write(file(u64::MAX - 1), "x").unwrap();
    fs::create_dir(file(2)).unwrap();
    fifo(&file(3));
    std::os::unix::fs::symlink("/etc/passwd", file(4)).unwrap();
    // Foreign entries instead of folders are left alone as well.
    let all = folder.parent().unwrap();
    fifo(&all.join("2"));
    fs::write(all.join("3"), "x").unwrap();
    fs::create_dir(all.join("x")).unwrap();
    fs::write(all.join("x").join(format!("{:020}", 1)), file_of(9)).unwrap();
    let count = || fs::read_dir(&folder).unwrap().count();
    let others = count() - 1;
    for number in 3..6 {
        let mut queue = open(state.path());
        assert!(queue.push(batch(number), None).held.is_none());
        let expected: Vec<_> = if number == 3 { vec![1, 3] } else { vec![number] };
        assert_eq!(drain(&mut queue), expected.into_iter().map(batch).collect::<Vec<_>>());
        assert_eq!((queue.unreadable(), count()), (0, others));
    }
    // A second process at the same time gets another folder.
    let first = open(state.path());
    assert_eq!(first.folder().unwrap(), folder);
    assert_eq!(open(state.path()).folder().unwrap(), all.join("4"));
}

/// Any other kind of file in place of a batch blocks no reader, and counts once.
#[test]
fn a_batch_becomes_something_else() {
    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    (1..=3).for_each(|number| drop(queue.push(batch(number), None)));
    let file = |number: u64| queue.folder().unwrap().join(format!("{number:020}"));
    let files = [file(1), file(2)];
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    fifo(&files[0]);
    std::os::unix::fs::symlink("/dev/zero", &files[1]).unwrap();
    assert_eq!(drain(&mut queue), [batch(3)]);
    assert_eq!(queue.unreadable(), 2);
    drop(queue);
    let mut queue = open(state.path());
    assert_eq!((drain(&mut queue).len(), queue.unreadable()), (0, 0));
}

/// Creates a FIFO, on which a reader blocks until a writer appears.
fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;

    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    drop(queue.push(batch(1), None));
    let folder = queue.folder().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = [
        mode(folder.parent().unwrap()),
        mode(folder),
        mode(&folder.join(format!("{:020}", 1))),
    ];
    assert_eq!(modes, [0o700, 0o700, 0o600]);
}

/// Batches that cannot be written are held in memory up to the limit, and written later.
#[test]
fn a_folder_is_away_for_a_while() {
    let state = tempfile::tempdir().unwrap();
    let mut queue = open(state.path());
    let folder = queue.folder().unwrap().to_owned();
    let away = folder.with_file_name("away");
    drop(queue.push(batch(0), None));
    fs::rename(&folder, &away).unwrap();
    for number in 1..=9 {
        let added = queue.push(batch(number), None);
        assert!(added.held.is_some());
        // Each has 7 bytes.
        assert_eq!(added.dropped, u64::from(number > 5));
        assert!(queue.held() <= LIMITS.held);
    }
    assert_eq!((queue.volatile(), queue.dropped()), (5, 4));
    fs::rename(&away, &folder).unwrap();
    drop(queue.push(batch(10), None));
    assert_eq!((queue.volatile(), queue.held(), queue.dropped()), (0, 0, 4));
    drop(queue);
    let mut queue = open(state.path());
    let left: Vec<_> = [0, 5, 6, 7, 8, 9, 10].into_iter().map(batch).collect();
    assert_eq!(drain(&mut queue), left);
}

/// A limit on file sizes for the process simulates a full disk.
#[test]
fn a_disk_is_full() {
    let state = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" --exact push::tests::queue::push_to_a_full_disk --ignored";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("RHIST_TEST_STATE", state.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut queue = open(state.path());
    assert_eq!((drain(&mut queue).len(), queue.unreadable()), (0, 0));
}

/// Run by the test above in a process with the limit.
#[test]
#[ignore = "part of another test"]
fn push_to_a_full_disk() {
    let Some(state) = std::env::var_os("RHIST_TEST_STATE") else {
        return;
    };
    let mut queue = open(state.as_ref());
    let added = queue.push(batch(1), None);
    assert_eq!(added.held.unwrap().to_string(), "File too large (os error 27)");
    assert_eq!(front(&mut queue).unwrap().1, batch(1));
    // The partial file is removed.
    assert_eq!(fs::read_dir(queue.folder().unwrap()).unwrap().count(), 0);
}

/// Resource limits of a separate process simulate a machine short of files or memory.
#[test]
fn what_cannot_be_read_for_a_moment_stays() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "push::tests::queue::read_without_files_or_memory",
            "--ignored",
        ])
        .env("RHIST_TEST_STATE", state.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Run by the test above.
#[test]
#[ignore = "part of another test"]
fn read_without_files_or_memory() {
    let Some(state) = std::env::var_os("RHIST_TEST_STATE") else {
        return;
    };
    let large = Batch {
        encoding: Encoding::Json,
        body: vec![b'x'; 256 << 20],
    };
    let mut queue = Queue::open(
        state.as_ref(),
        URL,
        Limits {
            bytes: u64::MAX,
            ..LIMITS
        },
    )
    .unwrap();
    assert!(queue.push(large.clone(), None).held.is_none());
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let files = (0..).find(|file: &u64| !Path::new(&format!("/proc/self/fd/{file}")).exists());
    for (resource, most, expected) in [
        (Resource::Nofile, files, "Too many open files (os error 24)"),
        (Resource::As, Some((pages << 12) + (64 << 20)), "out of memory"),
    ] {
        let before = getrlimit(resource);
        let limit = Rlimit {
            current: most,
            ..before
        };
        setrlimit(resource, limit).unwrap();
        let read = queue.next(Instant::now()).unwrap().1;
        setrlimit(resource, before).unwrap();
        assert_eq!(read.unwrap_err().to_string(), expected);
        assert_eq!((queue.len(), queue.unreadable()), (1, 0));
        assert!(front(&mut queue).unwrap().1 == large);
    }
}

#[test]
fn a_batch_that_fails_lets_others_go_first() {
    let mut queue = Queue::in_memory(LIMITS);
    (1..=5).for_each(|number| drop(queue.push(batch(number), None)));
    let begin = Instant::now();
    let at = |seconds| begin + Duration::from_secs(seconds);
    let next = |queue: &mut Queue, seconds| queue.next(at(seconds)).map(|(number, _)| number);
    // After the allowed attempts, the next batch gets its turn, and then the one after that.
    assert_eq!(queue.failed(1, 2, |_| at(1)), 1);
    assert_eq!(next(&mut queue, 0), Some(1));
    assert_eq!(queue.failed(1, 2, |times| at(u64::from(times))), 2);
    assert_eq!((next(&mut queue, 0), queue.due()), (Some(2), Some(at(2))));
    queue.failed(2, 1, |_| at(9));
    assert_eq!(next(&mut queue, 3), Some(3));
    // After a success, earlier batches get their turn, unless they are put off for longer.
    queue.remove(3);
    assert_eq!((next(&mut queue, 1), next(&mut queue, 2)), (Some(4), Some(1)));
    [1, 4, 5].iter().for_each(|number| queue.remove(*number));
    assert_eq!((next(&mut queue, 8), queue.due()), (None, Some(at(9))));
    assert_eq!(next(&mut queue, 9), Some(2));
    queue.remove(2);
    assert_eq!(
        (queue.is_empty(), queue.due(), queue.failed(2, 1, |_| at(1))),
        (true, None, 0)
    );
}

/// An action of a process with a queue.
#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    Accept,
    /// The process ends, and another continues.
    End,
    /// The process ends while it writes a file, of which this part exists.
    EndWriting(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Push),
        2 => Just(Step::Accept),
        1 => Just(Step::End),
        1 => any::<u8>().prop_map(Step::EndWriting),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_but_what_is_counted(steps in vec(step(), 0..60)) {
        let state = tempfile::tempdir().unwrap();
        let mut queue = open(state.path());
        let mut expected = VecDeque::new();
        // Counts of processes that have ended.
        let (mut dropped, mut cut) = (0, 0);
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Push(blocks) => {
                    let batch = Batch {
                        encoding: if blocks % 2 == 0 { Encoding::Json } else { Encoding::Protobuf },
                        body: format!("{number} ").repeat(usize::from(blocks) * 8).into_bytes(),
                    };
                    expected.push_back(batch.clone());
                    for _ in 0..queue.push(batch, None).dropped {
                        expected.pop_front();
                        dropped += 1;
                    }
                }
                Step::Accept => {
                    let front = front(&mut queue);
                    prop_assert_eq!(front.as_ref().map(|(_, batch)| batch), expected.front());
                    if let Some((number, _)) = front {
                        queue.remove(number);
                        expected.pop_front();
                    }
                }
                Step::End => {
                    drop(queue);
                    queue = open(state.path());
                }
                Step::EndWriting(part) => {
                    let bytes = file_of(number as u64);
                    let file = queue.folder().unwrap().join(format!("{:020}", 1_000_000 + number));
                    drop(queue);
                    fs::write(file, &bytes[..bytes.len() * usize::from(part) / 256]).unwrap();
                    cut += 1;
                    // Counts toward the limit until it is read.
                    queue = Queue::open(state.path(), URL, Limits { bytes: u64::MAX, ..LIMITS }).unwrap();
                    let all = drain(&mut queue);
                    prop_assert_eq!(queue.unreadable(), 1);
                    prop_assert!(all.iter().eq(&expected));
                    drop(queue);
                    queue = open(state.path());
                    for batch in all {
                        queue.push(batch, None);
                    }
                }
            }
            prop_assert!(queue.bytes() <= LIMITS.bytes);
            prop_assert_eq!(queue.len(), expected.len());
        }
        let left = drain(&mut queue);
        prop_assert!(left.iter().eq(&expected));
        let pushed = steps.iter().filter(|step| matches!(step, Step::Push(_))).count();
        let accepted = pushed - left.len() - dropped;
        prop_assert!(accepted <= steps.iter().filter(|step| matches!(step, Step::Accept)).count());
        prop_assert_eq!(cut, steps.iter().filter(|step| matches!(step, Step::EndWriting(_))).count());
    }
}

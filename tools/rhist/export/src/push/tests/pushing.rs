// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends batches to misbehaving receivers. All times are a hundredth of the program's.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use prost::Message;

use super::batch;
use super::receiver::Gate;
use super::receiver::PATIENCE;
use super::receiver::Port;
use super::receiver::Receiver;
use super::receiver::accept;
use super::receiver::answer;
use super::receiver::close;
use super::receiver::hang;
use super::receiver::wait_until;
use crate::otlp::protobuf::ExportMetricsServiceResponse;
use crate::otlp::protobuf::PartialSuccess;
use crate::otlp::protobuf::Status;
use crate::push::Batch;
use crate::push::Encoding;
use crate::push::Endpoint;
use crate::push::Limits;
use crate::push::Pace;
use crate::push::Pusher;
use crate::push::Queue;
use crate::push::Totals;

const PACE: Pace = Pace {
    first: Duration::from_millis(10),
    longest: Duration::from_millis(600),
};

type Said = Arc<Mutex<Vec<String>>>;

fn pusher(endpoint: Endpoint, queue: Queue) -> (Pusher, Said) {
    let said = Said::default();
    let told = said.clone();
    let tell = move |sentence: &str| told.lock().unwrap().push(sentence.to_owned());
    (Pusher::start(endpoint, queue, PACE, tell), said)
}

/// The shortest pause after so many failures.
fn shortest_pause(failures: u32) -> Duration {
    (PACE.first * (1 << (failures - 1).min(16))).min(PACE.longest) / 2
}

/// Attempts that fit into a time, if nothing is ever accepted.
fn most_attempts(time: Duration) -> u64 {
    let (mut attempts, mut next) = (0, Duration::ZERO);
    while next <= time {
        attempts += 1;
        next += shortest_pause(attempts);
    }
    attempts.into()
}

/// Pushes three batches, and waits until all are accepted, or lost.
fn push_three(receiver: &Receiver, timeout: Duration) -> (Totals, Vec<String>) {
    let mut endpoint = receiver.endpoint();
    endpoint.timeout = timeout;
    let (pusher, said) = pusher(endpoint, Queue::in_memory(Limits::default()));
    (1..=3).for_each(|number| pusher.push(batch(number)));
    assert!(pusher.wait(PATIENCE), "{:?}", pusher.totals());
    let totals = pusher.finish(PATIENCE);
    let said = said.lock().unwrap().clone();
    (totals, said)
}

#[test]
fn all_is_accepted_in_its_order() {
    let receiver = Receiver::start(|_, stream| accept(stream));
    let mut endpoint = receiver.endpoint();
    endpoint.set_header("Authorization", "Bearer x").unwrap();
    let (pusher, said) = pusher(endpoint, Queue::in_memory(Limits::default()));
    for number in 1..=100 {
        pusher.push(batch(number));
    }
    pusher.push(Batch {
        encoding: Encoding::Json,
        body: b"{}".to_vec(),
    });
    let totals = pusher.finish(PATIENCE);
    assert_eq!(
        (totals.accepted, totals.waiting, totals.retries, totals.lost()),
        (101, 0, 0, 0)
    );
    let bodies = receiver.bodies();
    let expected = (1..=100)
        .map(|number| format!("batch {number}"))
        .chain(["{}".to_owned()]);
    assert!(bodies.iter().cloned().eq(expected), "{bodies:?}");
    let requests = receiver.requests();
    let first = &requests[0].head;
    for line in [
        "post /v1/metrics http/1.1\r\n",
        "\r\ncontent-type: application/x-protobuf\r\n",
        concat!("\r\nuser-agent: rhist/", env!("CARGO_PKG_VERSION"), "\r\n"),
        "\r\nauthorization: bearer x\r\n",
    ] {
        assert!(first.contains(line), "{first}");
    }
    assert!(requests[100].head.contains("\r\ncontent-type: application/json\r\n"));
    assert_eq!(said.lock().unwrap().len(), 0);
}

/// The outage lasts a hundredth of a minute.
#[test]
fn a_receiver_is_down_for_a_minute() {
    let port = Port::reserve();
    let endpoint = port.endpoint();
    let state = tempfile::tempdir().unwrap();
    let queue = Queue::open(state.path(), endpoint.url(), Limits::default()).unwrap();
    let begin = Instant::now();
    let (pusher, said) = pusher(endpoint, queue);
    for number in 1..=60 {
        pusher.push(batch(number));
        thread::sleep(Duration::from_millis(10));
    }
    // Attempts are further and further apart: after 10, 20, 40 … ms, or half of these.
    wait_until(|| pusher.totals().retries >= 4);
    let (retries, time) = (pusher.totals().retries, begin.elapsed());
    assert!(retries <= most_attempts(time), "{retries} in {time:?}");
    let receiver = Receiver::listen(port.listen(), |_, stream| accept(stream));
    assert!(pusher.wait(PATIENCE));
    let expected: Vec<_> = (1..=60).map(|number| format!("batch {number}")).collect();
    assert_eq!(receiver.bodies(), expected);
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("does not accept batches, which are kept and sent again"),
        "{said:?}"
    );
    assert!(said[1].contains("accepts batches again"), "{said:?}");
}

#[test]
fn a_receiver_wants_to_be_left_alone() {
    let receiver = Receiver::start(|number, stream| match number {
        0 => answer(stream, "503 Service Unavailable", "Retry-After: 3\r\n", b"busy"),
        1 => answer(stream, "429 Too Many Requests", "", b""),
        2 => answer(stream, "502 Bad Gateway", "Retry-After: soon\r\n", b"\xff"),
        3 => answer(
            stream,
            "504 Gateway Timeout",
            "Content-Type: application/json\r\n",
            b"{",
        ),
        _ => accept(stream),
    });
    let (totals, said) = push_three(&receiver, PATIENCE);
    assert_eq!((totals.accepted, totals.retries, totals.lost()), (3, 4, 0));
    assert_eq!(
        receiver.bodies(),
        ["batch 1"; 5]
            .into_iter()
            .chain(["batch 2", "batch 3"])
            .collect::<Vec<_>>()
    );
    let requests = receiver.requests();
    let waits: Vec<_> = requests.windows(2).map(|pair| pair[1].when - pair[0].when).collect();
    assert!(waits[0] >= Duration::from_secs(3), "{waits:?}");
    // The others are some milliseconds.
    assert!(
        waits[1..].iter().all(|wait| *wait < Duration::from_secs(3)),
        "{waits:?}"
    );
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn what_is_wrong_with_a_batch_is_not_sent_again() {
    let status = Status {
        message: "no such\u{1b}[2J metric".to_owned(),
    };
    let status = status.encode_to_vec();
    let receiver = Receiver::start(move |number, stream| match number {
        0 => answer(stream, "400 Bad Request", "", &status),
        1 => answer(stream, "500 Internal Server Error", "Retry-After: 1\r\n", b"oops"),
        // Nobody knows the server at that address.
        _ => answer(
            stream,
            "307 Temporary Redirect",
            "Location: http://127.0.0.1:1/\r\n",
            b"",
        ),
    });
    let (totals, said) = push_three(&receiver, PATIENCE);
    assert_eq!(
        (totals.accepted, totals.refused, totals.retries, totals.lost()),
        (0, 3, 0, 3)
    );
    assert_eq!(receiver.bodies(), ["batch 1", "batch 2", "batch 3"]);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].contains("400 Bad Request: no such\\u{1b}[2J metric"),
        "{said:?}"
    );
}

#[test]
fn some_points_are_rejected() {
    let partial = |rejected_data_points, error_message: &str| ExportMetricsServiceResponse {
        partial_success: Some(PartialSuccess {
            rejected_data_points,
            error_message: error_message.to_owned(),
        }),
    };
    let bodies = [
        partial(5, "too old").encode_to_vec(),
        partial(0, "deprecated").encode_to_vec(),
    ];
    let json = br#"{"partialSuccess":{"rejectedDataPoints":"7"}}"#;
    let receiver = Receiver::start(move |number, stream| match number {
        2 => answer(stream, "200 OK", "Content-Type: application/json\r\n", json),
        number => answer(stream, "200 OK", "", &bodies[number]),
    });
    let (totals, said) = push_three(&receiver, PATIENCE);
    assert_eq!(
        (totals.accepted, totals.rejected_points, totals.retries, totals.lost()),
        (3, 12, 0, 0)
    );
    assert_eq!(receiver.bodies().len(), 3);
    let ends = [
        "rejected data points: 5: too old",
        "says: deprecated",
        "rejected data points: 7",
    ];
    assert!(
        said.iter().zip(ends).all(|(said, end)| said.ends_with(end)) && said.len() == 3,
        "{said:?}"
    );
}

#[test]
fn connections_end_before_the_answer() {
    let receiver = Receiver::start(|number, stream| match number {
        0 => close(),
        1 => stream.write_all(b"HTTP/1.1 2").and_then(|()| close()),
        2 => stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Le")
            .and_then(|()| close()),
        3 => stream.write_all(b"SSH-2.0-OpenSSH_10.0\r\n\r\n").and_then(|()| close()),
        4 => stream.write_all(&[0xff; 100_000]).and_then(|()| close()),
        // The status line alone means that the batch was accepted.
        5 => stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nxx")
            .and_then(|()| close()),
        _ => accept(stream),
    });
    let (totals, said) = push_three(&receiver, PATIENCE);
    assert_eq!((totals.accepted, totals.retries, totals.lost()), (3, 5, 0));
    // After three attempts with one batch, another gets its turn. After its success, the first gets
    // another try.
    let bodies = [["batch 1"; 3], ["batch 2"; 3], ["batch 1", "batch 3", ""]].concat();
    assert_eq!(receiver.bodies(), bodies[..8]);
    assert_eq!(said.len(), 2, "{said:?}");
}

/// Also if a proxy reports that the receiver has hung up.
#[test]
fn a_batch_that_the_receiver_hangs_up_on_stops_no_other() {
    for says in [None, Some("502 Bad Gateway"), Some("504 Gateway Timeout")] {
        let receiver = Receiver::start_by_body(move |body, stream| match (body, says) {
            (b"batch 1" | b"batch 2", None) => close(),
            (b"batch 1" | b"batch 2", Some(status)) => answer(stream, status, "", b""),
            _ => accept(stream),
        });
        let state = tempfile::tempdir().unwrap();
        let endpoint = receiver.endpoint();
        let open = || Queue::open(state.path(), receiver.endpoint().url(), Limits::default()).unwrap();
        let (pusher, said) = pusher(endpoint, open());
        (1..=20).for_each(|number| pusher.push(batch(number)));
        wait_until(|| pusher.totals().accepted == 18);
        // They are tried again, less and less often: after 40, 80 … ms, or half of these.
        let attempts = || -> Vec<Instant> {
            let mut requests = receiver.requests();
            requests.retain(|request| request.body == b"batch 1");
            requests.iter().map(|request| request.when).collect()
        };
        wait_until(|| attempts().len() >= 7);
        let pauses: Vec<_> = attempts().windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            (3..)
                .zip(&pauses[2..])
                .all(|(times, pause)| *pause >= shortest_pause(times)),
            "{pauses:?}"
        );
        // The last ones are sent in spite of them, too.
        (21..=30).for_each(|number| pusher.push(batch(number)));
        let totals = pusher.finish(PATIENCE);
        assert_eq!((totals.accepted, totals.waiting, totals.lost()), (28, 2, 0));
        let told = said.lock().unwrap().clone();
        assert!((2..=4).contains(&told.len()), "{told:?}");
        assert_eq!(open().len(), 2);
    }
}

/// During closing, one failure of each of two batches shows that the receiver is the cause.
#[test]
fn the_last_batches_are_sent_behind_one_that_the_receiver_hangs_up_on() {
    let gate = Arc::new(Gate::default());
    let at = gate.clone();
    let receiver = Receiver::start_by_body(move |body, stream| match body {
        b"batch 1" => {
            at.pass();
            close()
        }
        _ => {
            // Longer than the delay of the first batch.
            thread::sleep(PACE.first * 3);
            accept(stream)
        }
    });
    let (pusher, _) = pusher(receiver.endpoint(), Queue::in_memory(Limits::default()));
    (1..=5).for_each(|number| pusher.push(batch(number)));
    wait_until(|| !receiver.requests().is_empty());
    pusher.close();
    gate.open();
    let totals = pusher.finish(PATIENCE);
    assert_eq!((totals.accepted, totals.waiting), (4, 1));
    let expected = [1, 2, 3, 4, 5, 1, 1].map(|number| format!("batch {number}"));
    assert_eq!(receiver.bodies(), expected);
}

/// Also if the receiver asks for a pause of zero seconds.
#[test]
fn no_attempt_comes_after_the_last_one() {
    let gate = Arc::new(Gate::default());
    let at = gate.clone();
    let receiver = Receiver::start(move |number, stream| match number {
        0 | 1 => {
            // Nothing more comes then.
            at.pass();
            answer(stream, "503 Service Unavailable", "Retry-After: 0\r\n", b"")
        }
        _ => answer(stream, "502 Bad Gateway", "", b""),
    });
    let pace = Pace {
        first: Duration::ZERO,
        longest: Duration::ZERO,
    };
    let queue = Queue::in_memory(Limits::default());
    let pusher = Pusher::start(receiver.endpoint(), queue, pace, |_| ());
    pusher.push(batch(1));
    wait_until(|| !receiver.requests().is_empty());
    pusher.close();
    gate.open();
    assert_eq!(pusher.finish(PATIENCE).waiting, 1);
    // The request in flight, and the last one.
    assert_eq!(receiver.requests().len(), 2);
}

#[test]
fn answers_are_long() {
    let receiver = Receiver::start(|number, stream| match number {
        0 => answer(stream, "200 OK", "", &vec![b'x'; 1 << 20]),
        1 => answer(stream, "200 OK", &format!("X: {}\r\n", "x".repeat(1 << 20)), b""),
        _ => accept(stream),
    });
    let (totals, _) = push_three(&receiver, PATIENCE);
    assert_eq!((totals.accepted, totals.lost()), (3, 0));
}

#[test]
fn a_receiver_hangs_or_is_slow() {
    let receiver = Receiver::start(|number, stream| match number {
        0 => hang(),
        1 => stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").and_then(|()| hang()),
        // A byte now and then does not extend the timeout.
        2 => {
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" {
                thread::sleep(Duration::from_millis(50));
                stream.write_all(&[*byte])?;
            }
            Ok(())
        }
        _ => accept(stream),
    });
    let begin = Instant::now();
    let (totals, _) = push_three(&receiver, Duration::from_millis(500));
    assert_eq!((totals.accepted, totals.lost()), (3, 0));
    // On a machine that is busy, an answer that is right may be late, too.
    let most = most_attempts(begin.elapsed());
    assert!((3..=most).contains(&totals.retries), "{totals:?}, at most {most}");
    // A batch comes again unless a whole answer arrives in time.
    let bodies = receiver.bodies();
    let comes_again = |number: usize| bodies[number + 1..].contains(&bodies[number]);
    assert!((0..3).all(comes_again), "{bodies:?}");
}

/// A hanging receiver does not block the producer of readings.
#[test]
fn nobody_waits_for_a_receiver_that_hangs() {
    // It hangs for hours, and for so long that all batches would take more than a minute.
    for timeout in [Duration::from_secs(10_000), Duration::from_millis(700)] {
        let receiver = Receiver::start(|_, _| hang());
        let state = tempfile::tempdir().unwrap();
        let mut endpoint = receiver.endpoint();
        endpoint.timeout = timeout;
        let queue = Queue::open(state.path(), endpoint.url(), Limits::default()).unwrap();
        let (pusher, _) = pusher(endpoint, queue);
        pusher.push(batch(0));
        wait_until(|| !receiver.requests().is_empty());
        let begin = Instant::now();
        for number in 1..100 {
            pusher.push(batch(number));
        }
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
        if timeout > PATIENCE {
            continue;
        }
        // Nor in the end: the one that is being sent, and two attempts more.
        pusher.close();
        let before = receiver.requests().len();
        let totals = pusher.finish(PATIENCE);
        assert_eq!((totals.waiting, totals.volatile), (100, 0));
        let more = receiver.requests().len() - before;
        assert!(more <= 3, "{more}");
    }
}

/// Batches held in memory are written at the end if possible; otherwise they count as lost.
#[test]
fn a_queue_can_be_written_again_at_the_end() {
    let endpoint = Endpoint::new("http://127.0.0.1:1").unwrap();
    for is_back in [true, false] {
        let state = tempfile::tempdir().unwrap();
        let open = || Queue::open(state.path(), endpoint.url(), Limits::default()).unwrap();
        let queue = open();
        let folder = queue.folder().unwrap().to_owned();
        let away = folder.with_file_name("away");
        std::fs::rename(&folder, &away).unwrap();
        let (pusher, said) = pusher(endpoint.clone(), queue);
        (1..=3).for_each(|number| pusher.push(batch(number)));
        assert_eq!(pusher.totals().volatile, 3);
        if is_back {
            std::fs::rename(&away, &folder).unwrap();
        }
        let totals = pusher.finish(PATIENCE);
        let volatile = if is_back { 0 } else { 3 };
        assert_eq!((totals.waiting, totals.volatile, totals.lost()), (3, volatile, 0));
        // With a different receiver afterwards, these batches count as lost.
        assert_eq!(totals.and(Totals::default()).lost(), volatile);
        assert!(
            said.lock()
                .unwrap()
                .iter()
                .any(|said| said.contains("is kept in memory")),
            "{said:?}"
        );
        assert_eq!(open().len() as u64, 3 - volatile);
    }
}

#[test]
fn what_is_left_is_sent_by_the_next_process() {
    let port = Port::reserve();
    let endpoint = port.endpoint();
    let state = tempfile::tempdir().unwrap();
    let open = || Queue::open(state.path(), endpoint.url(), Limits::default()).unwrap();
    let (first, second) = (open(), open());
    assert_ne!(first.folder(), second.folder());
    for (queue, numbers) in [(first, 1..=3), (second, 4..=6)] {
        let (pusher, _) = pusher(endpoint.clone(), queue);
        numbers.for_each(|number| pusher.push(batch(number)));
        let begin = Instant::now();
        assert_eq!(pusher.finish(PATIENCE).waiting, 3);
        // A refused connection does not delay the end.
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    }
    // Queues of different receivers are separate.
    let other = Queue::open(state.path(), "http://127.0.0.1:1/v1/metrics", Limits::default()).unwrap();
    assert!(other.is_empty());
    let receiver = Receiver::listen(port.listen(), |_, stream| accept(stream));
    let (pusher, _) = pusher(endpoint.clone(), open());
    assert!(pusher.wait(PATIENCE));
    let expected: Vec<_> = (1..=6).map(|number| format!("batch {number}")).collect();
    assert_eq!(receiver.bodies(), expected);
    assert!(open().is_empty());
}

/// A process is killed repeatedly while it pushes. All batches that it has taken arrive; only the
/// one in flight at its end is sent by two processes.
#[test]
fn a_process_is_killed() {
    let receiver = Receiver::start(|_, stream| {
        thread::sleep(Duration::from_millis(3));
        accept(stream)
    });
    let state = tempfile::tempdir().unwrap();
    const ROUNDS: u64 = 8;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "push::tests::pushing::push_until_killed", "--ignored"])
            .env("RHIST_TEST_URL", receiver.endpoint().url())
            .env("RHIST_TEST_STATE", state.path())
            .env("RHIST_TEST_FIRST", (round * 1_000_000).to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let before = receiver.requests().len();
        wait_until(|| receiver.requests().len() >= before + 10);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let queue = Queue::open(state.path(), receiver.endpoint().url(), Limits::default()).unwrap();
    let (pusher, _) = pusher(receiver.endpoint(), queue);
    assert!(pusher.wait(PATIENCE), "{:?}", pusher.totals());
    // The file being written at the kill was never taken.
    assert!(pusher.totals().unreadable <= 1);
    let mut bodies = receiver.bodies();
    let all = bodies.len();
    bodies.sort();
    bodies.dedup();
    assert!((all - bodies.len()) as u64 <= ROUNDS, "{all} {}", bodies.len());
    for round in 0..ROUNDS {
        let mut numbers: Vec<u64> = bodies
            .iter()
            .map(|body| body["batch ".len()..].parse().unwrap())
            .filter(|number| number / 1_000_000 == round)
            .collect();
        numbers.sort_unstable();
        let first = round * 1_000_000;
        assert!(
            numbers.iter().copied().eq(first..first + numbers.len() as u64),
            "{numbers:?}"
        );
    }
}

/// Run by the test above in a process of its own.
#[test]
#[ignore = "part of another test"]
fn push_until_killed() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(url), Some(state), Some(first)) = (
        variable("RHIST_TEST_URL"),
        variable("RHIST_TEST_STATE"),
        variable("RHIST_TEST_FIRST"),
    ) else {
        return;
    };
    let mut endpoint = Endpoint::new(&url).unwrap();
    endpoint.timeout = PATIENCE;
    let queue = Queue::open(state.as_ref(), endpoint.url(), Limits::default()).unwrap();
    let (pusher, _) = pusher(endpoint, queue);
    for number in first.parse().unwrap().. {
        pusher.push(batch(number));
        thread::sleep(Duration::from_millis(2));
        // However slow it is: the last process has not much to send.
        wait_until(|| pusher.totals().waiting < 50);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist check` and `rhist serve` without a kernel: faults in a configuration, and answers to
//! clients.

mod patience;
mod receiver;

use std::fs;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use patience::PATIENCE;
use patience::wait_until;
use receiver::receiver;
use rhist_export::push::Batch;
use rhist_export::push::Encoding;
use rhist_export::push::Endpoint;
use rhist_export::push::Limits;
use rhist_export::push::Queue;
use rustix::process::Pid;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::Signal;
use rustix::process::getrlimit;
use rustix::process::kill_process;
use rustix::process::prlimit;

/// `rhist` with the events of the fixtures.
fn rhist(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures");
    command
        .env("RHIST_TRACEFS", fixtures)
        .env("RHIST_RUN", home.join("run"))
        .env("RHIST_STATE", home.join("state"))
        .env("XDG_CONFIG_HOME", home)
        // No request is given up, however busy the machine is.
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
        .current_dir(home);
    command
}

/// Exit status and messages of `rhist check` for a file.
fn check(text: &str) -> (Option<i32>, String) {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a.toml"), text).unwrap();
    let output = rhist(home.path()).args(["check", "a.toml"]).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn what_can_be_made() {
    let text = "[histogram.a]\ncount = \"sched_switch --by next_comm\"\n";
    let said = "1 histogram: this machine supports all of them\n".to_owned();
    assert_eq!(check(text), (Some(0), said));
}

#[test]
fn files_without_histograms() {
    let said = "no histograms are configured in a.toml\n".to_owned();
    assert_eq!(check("# None yet\n"), (Some(0), said));
}

#[test]
fn a_recipe_may_name_count_or_between() {
    for recipe in [
        "count sched_switch --by next_comm",
        "between sched_waking sched_switch --on pid=next_pid",
    ] {
        let said = "1 histogram: this machine supports all of them\n".to_owned();
        assert_eq!(
            check(&format!("[histogram.a]\nrecipe = \"{recipe}\"\n")),
            (Some(0), said)
        );
    }
    let (status, said) = check("[histogram.a]\nrecipe = \"count sched_switch --on x\"\n");
    assert_eq!(status, Some(2));
    insta::assert_snapshot!(said, @r#"
    error: unexpected argument '--on' found
     --> a.toml:2:30
      |
    2 | recipe = "count sched_switch --on x"
      |                              ^^^^
    "#);
}

#[test]
fn what_is_wrong_with_words() {
    let text = "# Switches\n[histogram.a]\ncount = \"sched_swich --by next_comm\"\n\n[histogram.b]\n\
                recipe = 'syscount --where \"id = 5\"'\n\n[histogram.c]\nrecipe = \"runqlat -d 5\"\n";
    let (status, said) = check(text);
    assert_eq!(status, Some(2));
    insta::assert_snapshot!(said, @r#"
    error: unknown event sched_swich
     --> a.toml:3:10
      |
    3 | count = "sched_swich --by next_comm"
      |          ^^^^^^^^^^^ did you mean sched:sched_switch?
    error: = is not a comparison
     --> a.toml:6:32
      |
    6 | recipe = 'syscount --where "id = 5"'
      |                                ^ did you mean ==?
    error: --pid, --children, --frequency, --duration, --interval, --format, --keep, --quiet and --dry-run do not apply to a histogram of the service
     --> a.toml:9:11
      |
    9 | recipe = "runqlat -d 5"
      |           ^^^^^^^^^^^^
    "#);
}

#[test]
fn units_are_in_tables() {
    let (status, said) = check("[histogram.a]\nrecipe = \"runqlat --unit s\"\n");
    let expected = "error: --unit does not apply here: set it in the table, as in unit = \"s\"\n --> a.toml:2:11\n";
    assert!(status == Some(2) && said.starts_with(expected), "{said}");
}

#[test]
fn what_is_wrong_with_a_trigger() {
    for (trigger, expected) in [
        ("hist:keys=next_pid,nxt_comm", "a.toml:3:31"),
        ("hist:keys=next_pid:vals=next_prio,nxt_prio.dist", "a.toml:3:46"),
        ("hist:keys=next_pid if prev_prio <> 5", "a.toml:3:44"),
        ("hist:", "a.toml:3:12"),
        ("hist:keys=", "a.toml:3:12"),
        ("hist:keys=next_pid:clear", "a.toml:3:31"),
        ("hist:keys=next_pid:pause if prev_prio > 5", "a.toml:3:31"),
        ("hist:keys=next_pid:sort=hitcount:limit(1)", "a.toml:3:45"),
    ] {
        let text = format!("[histogram.a]\nevent = \"sched:sched_switch\"\ntrigger = \"{trigger}\"\n");
        let (status, said) = check(&text);
        assert!(status == Some(2) && said.contains(expected), "{trigger}: {said}");
    }
    // Variables are left to the kernel.
    let trigger =
        "hist:keys=next_pid,prev_pid:vals=hitcount,next_prio:lat=common_timestamp-$ts0:onmax($lat).save(next_comm)";
    let text = format!("[histogram.a]\nevent = \"sched:sched_switch\"\ntrigger = \"{trigger}\"\n");
    assert_eq!(check(&text).0, Some(0), "{}", check(&text).1);
}

#[test]
fn what_is_wrong_with_labels() {
    let table = |what: &str, labels: &str| check(&format!("[histogram.a]\n{what}\nlabels = {{ {labels} }}\n"));
    let count = "count = \"sched_switch --by next_comm\"";
    assert_eq!(table(count, "next_comm = \"task\"").0, Some(0));
    insta::assert_snapshot!(table(count, "next_comm = \"task\", nosuch = \"x\"").1, @r#"
    error: a has no key nosuch
     --> a.toml:3:32
      |
    3 | labels = { next_comm = "task", nosuch = "x" }
      |                                ^^^^^^
      |
      = help: its keys are next_comm
    "#);
    let trigger = "event = \"sched:sched_switch\"\ntrigger = \"hist:keys=next_pid.hex,next_comm\"";
    let (status, said) = table(trigger, "next_pid = \"pid\"");
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(table(trigger, "\"next_pid.hex\" = \"pid\"").0, Some(2));
    assert_eq!(table("count = \"sched_switch\"", "next_comm = \"task\"").0, Some(2));
}

#[test]
fn groups_are_served_where_a_table_says_so() {
    let trigger = "event = \"sched:sched_switch\"\ntrigger = \"hist:keys=next_pid.cgroup\"";
    let (status, said) = check(&format!("[histogram.a]\n{trigger}\n"));
    assert_eq!(status, Some(2));
    insta::assert_snapshot!(said, @r"
    error: everybody who can scrape this would read paths of control groups
     --> a.toml:1:12
      |
    1 | [histogram.a]
      |            ^
      |
      = help: containers = true allows that
    ");
    let (status, said) = check(&format!("[histogram.a]\n{trigger}\ncontainers = true\n"));
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn help_is_no_histogram() {
    for text in ["count = \"sched_switch --help\"", "recipe = \"runqlat -h\""] {
        let (status, said) = check(&format!("[histogram.a]\n{text}\n"));
        assert_eq!(status, Some(2));
        assert!(
            said.starts_with("error: --help does not apply to a histogram of the service\n"),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_served() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a.toml"), "nonsense = 1\n").unwrap();
    let serve = |folder: &str, listen: &str| {
        let output = rhist(home.path())
            .args(["serve", "--config", folder, "--listen", listen])
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = serve(".", "127.0.0.1:0");
    assert!(status == Some(2) && said.contains("a.toml:1:1"), "{said}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let expected = format!("rhist: cannot listen on {address}: Address already in use (os error 98)\n");
    assert_eq!(serve("none", &address), (Some(1), expected));
}

/// A service without histograms.
struct Service {
    child: Child,
    address: String,
    home: tempfile::TempDir,
    /// Messages after its start, until it ends.
    said: mpsc::Receiver<String>,
}

impl Service {
    fn start() -> Self {
        Self::of("", |_| ())
    }

    /// Starts a service with this configuration, after a preparation.
    fn of(config: &str, prepare: impl FnOnce(&Path)) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("a.toml"), config).unwrap();
        prepare(home.path());
        let mut child = rhist(home.path())
            .args(["serve", "--config", ".", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let address = said.by_ref().find_map(|line| {
            let rest = line.split_once("listening on http://")?.1;
            Some(rest.trim_end_matches("/metrics").to_owned())
        });
        let (sender, later) = mpsc::channel();
        thread::spawn(move || said.for_each(|line| drop(sender.send(line))));
        Service {
            child,
            address: address.unwrap(),
            home,
            said: later,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the metrics contain this line.
    fn tells(&self, line: &str) {
        println!("waits for {line}");
        wait_until(|| self.get("/metrics", "").lines().any(|one| one == line));
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Complete answer to these bytes.
    fn query(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The service may refuse the request before all of it was sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        let host = match headers.contains("Host:") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        self.query(format!("GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").as_bytes())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Skipped if the test has waited for it.
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::TERM);
        }
        let status = self.child.wait();
        if !std::thread::panicking() {
            assert!(status.unwrap().success());
        }
    }
}

#[test]
fn requests_are_answered() {
    let service = Service::start();
    let status = |answer: String| answer.lines().next().unwrap_or_default().to_owned();
    assert!(service.get("/healthz", "").ends_with("\r\n\r\nok\n"));
    assert_eq!(status(service.get("/nothing", "")), "HTTP/1.1 404 Not Found");
    assert_eq!(
        status(service.query(b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        "HTTP/1.1 405 Method Not Allowed"
    );
    assert_eq!(status(service.query(b"\0\x01\x02\r\n\r\n")), "HTTP/1.1 400 Bad Request");
    let text = service.get("/metrics?x", "");
    assert!(
        text.contains("Content-Type: text/plain; version=0.0.4") && text.contains("rhist_serve_build_info{version=")
    );
    assert!(service.get("/healthz", "Host: localhost:9953\r\n").ends_with("ok\n"));
    let page = service.get("/metrics", "Host: evil.example:9953\r\n");
    assert_eq!(status(page.clone()), "HTTP/1.1 403 Forbidden");
    assert!(
        page.contains("Not by evil.example:9953:") && !page.contains("rhist_serve_"),
        "{page}"
    );
    let open = service.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(open.ends_with("# EOF\n"), "{open}");
    let head = service.query(b"HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(
        head.ends_with("\r\n\r\n") && head.contains("Content-Length: "),
        "{head}"
    );
    let refused = service.query(b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n");
    assert!(
        refused.starts_with("HTTP/1.1 413 ") && refused.ends_with("\r\n\r\n"),
        "{refused}"
    );
    // Ambiguous requests.
    for headers in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n",
    ] {
        let answer = service.query(format!("GET /healthz HTTP/1.1\r\n{headers}\r\n").as_bytes());
        assert_eq!(status(answer), "HTTP/1.1 400 Bad Request", "{headers}");
    }
    let other = service.get("http://evil.example/metrics", "Host: localhost\r\n");
    assert_eq!(status(other), "HTTP/1.1 400 Bad Request");
    // Without a Host, the target's host is used.
    let other = service.query(b"GET http://evil.example/metrics HTTP/1.0\r\n\r\n");
    assert_eq!(status(other), "HTTP/1.1 403 Forbidden");
    let whole = service.get(&format!("http://{}/healthz", service.address), "");
    assert!(whole.ends_with("\r\n\r\nok\n"), "{whole}");
}

#[test]
fn a_connection_has_several_requests() {
    let service = Service::start();
    let twice = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20)
        + "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = service.query(twice.as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 21);
}

#[test]
fn hostile_clients_keep_nobody_waiting() {
    let service = Service::start();
    let mut idle: Vec<TcpStream> = Vec::new();
    for round in 0..100 {
        let mut stream = service.connect();
        // Half a request, none at all, or many without reading the answers.
        let bytes = match round % 3 {
            0 => b"GET /metrics HTTP/1.1\r\nHo".to_vec(),
            1 => Vec::new(),
            _ => b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000),
        };
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(&bytes);
        idle.push(stream);
    }
    let begin = Instant::now();
    assert!(
        service
            .get("/metrics", "")
            .contains("rhist_serve_connections_dropped_total")
    );
    // Each of the 32 connections that it has at once could keep it waiting for 10 s.
    assert!(begin.elapsed() < PATIENCE);
    // The service closed the oldest connections to accept later ones.
    let closed = |stream: &mut TcpStream| {
        stream.set_nonblocking(false).unwrap();
        match stream.read(&mut [0; 1]) {
            Ok(0) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
            Ok(_) => false,
        }
    };
    assert!(closed(&mut idle[1]));
}

/// CPU time of a process, in clock ticks.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn without_files_it_waits() {
    let service = Service::start();
    let pid = Pid::from_child(&service.child);
    let before = getrlimit(Resource::Nofile);
    // The first free descriptor is above the limit, so the service cannot open another.
    let is_free = |file: &u64| !Path::new(&format!("/proc/{}/fd/{file}", service.child.id())).exists();
    let files = (0..).find(is_free);
    let limit = Rlimit {
        current: files,
        ..before
    };
    prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    let begin = cpu_ticks(service.child.id());
    let mut stream = service.connect();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    thread::sleep(Duration::from_secs(2));
    let used = cpu_ticks(service.child.id()) - begin;
    assert!(used < 20, "{used} ticks");
    prlimit(Some(pid), Resource::Nofile, before).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

#[test]
fn a_request_that_does_not_end_is_ended() {
    let service = Service::start();
    let begin = Instant::now();
    let mut stream = service.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    // Not after two minutes, as without a request.
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(begin.elapsed() >= Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn what_is_wrong_with_a_receiver() {
    let (status, said) = check("[push]\nto = \"ftp://x\"\n");
    assert_eq!(status, Some(2));
    insta::assert_snapshot!(said, @r#"
    error: ftp://x: the URL has to begin with http://
     --> a.toml:2:6
      |
    2 | to = "ftp://x"
      |      ^^^^^^^^^
    "#);
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a.toml"), "[push]\n").unwrap();
    for command in [
        &["check", "a.toml"][..],
        &["serve", "--config", ".", "--listen", "127.0.0.1:0"],
    ] {
        let mut rhist = rhist(home.path());
        let output = rhist
            .args(command)
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = "rhist: OTEL_EXPORTER_OTLP_PROTOCOL: rhist has http/protobuf and http/json, not grpc\n";
        assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
    }
}

/// A batch left for a receiver by a previous service.
fn leave(home: &Path, url: &str) {
    let endpoint = Endpoint::new(url).unwrap();
    let mut queue = Queue::open(&home.join("state"), endpoint.url(), Limits::default()).unwrap();
    let body = url.as_bytes().to_vec();
    let encoding = Encoding::Protobuf;
    assert!(queue.push(Batch { encoding, body }, None).held.is_none());
}

fn push_to(url: &str) -> String {
    format!("[push]\nto = \"{url}\"\n")
}

#[test]
fn what_was_left_is_pushed_also_to_another_receiver() {
    let [(first, at_first), (second, at_second)] = [(); 2].map(|()| receiver("200 OK"));
    let service = Service::of(&push_to(&first), |home| {
        leave(home, &first);
        leave(home, &second);
    });
    service.tells("rhist_push_batches_total{result=\"accepted\"} 1");
    service.tells("rhist_push_queue_batches 0");
    assert_eq!(
        at_first.try_iter().map(|(_, body)| body).collect::<Vec<_>>(),
        [first.as_bytes()]
    );
    assert_eq!(at_second.try_iter().count(), 0);
    fs::write(service.home.path().join("a.toml"), push_to(&second)).unwrap();
    service.signal(Signal::HUP);
    // Batches for the first receiver still count.
    service.tells("rhist_push_batches_total{result=\"accepted\"} 2");
    assert_eq!(
        at_second.try_iter().map(|(_, body)| body).collect::<Vec<_>>(),
        [second.as_bytes()]
    );
    assert_eq!(at_first.try_iter().count(), 0);
    // An invalid configuration changes nothing.
    fs::write(service.home.path().join("a.toml"), "[push]\nto = \"ftp://x\"\n").unwrap();
    service.signal(Signal::HUP);
    service.tells("rhist_serve_config_last_reload_successful 0");
    service.tells("rhist_push_batches_total{result=\"accepted\"} 2");
}

#[test]
fn a_configuration_that_cannot_be_read_is_not_used() {
    let service = Service::start();
    fs::remove_file(service.home.path().join("a.toml")).unwrap();
    fs::create_dir(service.home.path().join("a.toml")).unwrap();
    service.signal(Signal::HUP);
    let said = [(); 2].map(|()| service.said.recv_timeout(PATIENCE).unwrap());
    assert_eq!(
        said,
        [
            "rhist: ./a.toml: not a regular file, or larger than 1 MiB",
            "rhist: the new configuration is not used; the previous one stays in use"
        ]
    );
}

#[test]
fn what_is_lost_is_told_at_the_end() {
    let (url, _requests) = receiver("401 Unauthorized");
    let mut service = Service::of(&push_to(&url), |home| leave(home, &url));
    service.tells("rhist_push_batches_total{result=\"refused\"} 1");
    service.signal(Signal::TERM);
    service.child.wait().unwrap();
    let said: Vec<_> = service.said.iter().collect();
    let lost = "rhist: lost: 1 batch; 1 refused, 0 dropped, 0 unreadable, 0 not sent";
    assert!(said.iter().any(|line| line == lost), "{said:?}");
}

#[test]
fn a_receiver_keeps_the_end_waiting_for_seconds_only() {
    // Listens, but accepts no connections.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    for url in [silent, "http://127.0.0.1:1".to_owned()] {
        let mut service = Service::of(&push_to(&url), |home| leave(home, &url));
        service.tells("rhist_push_queue_batches 1");
        service.signal(Signal::TERM);
        // The signal itself ends a service that is kept waiting for 8 s.
        assert!(service.child.wait().unwrap().success(), "{url}");
        // The next one has it.
        let url = Endpoint::new(&url).unwrap().url().to_owned();
        let queue = Queue::open(&service.home.path().join("state"), &url, Limits::default()).unwrap();
        assert_eq!(queue.len(), 1);
    }
}

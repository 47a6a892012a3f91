// SPDX-License-Identifier: MIT OR Apache-2.0

//! A machine made of recordings: it is scraped like `rhist serve`, and each scrape adds a recorded
//! interval.

use std::env;
use std::io::stdin;

use rhist_core::recording::Reader;
use rhist_core::recording::Replay;

use super::*;

/// Variable with the folder of the machine: a configuration, and a recording for each of its
/// histograms.
const FOLDER: &str = "RHIST_MACHINE";

/// Prints its port, and serves until the end of standard input.
#[test]
#[ignore = "make test-fleet runs it"]
fn a_machine_is_served() {
    let folder = PathBuf::from(env::var_os(FOLDER).expect(FOLDER));
    let mut service = Service::new(Id::example(), Journals::at(folder.join("run")));
    service.apply(check::read(&folder).unwrap(), Instant::now());
    let histograms = service.histograms().iter();
    let names: Vec<String> = histograms.map(|histogram| histogram.wanted.name.clone()).collect();
    for name in &names {
        let open = || Reader::open(&folder.join(format!("{name}.jsonl"))).unwrap();
        let mut reader = open();
        reader.by_ref().for_each(|interval| drop(interval.unwrap()));
        service.replay(name, Replay::new(open()), reader.into_names()).unwrap();
    }
    let mut server = Server::bind(("127.0.0.1", 0)).unwrap();
    let address = server.address().unwrap();
    let mut scraper = Scraper {
        planner: ConfigPlanner::default(),
        programs: ServicePrograms::default(),
        service,
        own: SelfMetrics::new("rhist"),
        pushing: Pushing::new(|_| unreachable!("nobody has said where to push")),
        threads: Vec::new(),
        bodies: BTreeMap::new(),
        hosts: Hosts::new(address.ip(), "machine", []),
    };
    say!("port {}", address.port());
    loop {
        let answer = &mut |request: &Request, server: &Server| scraper.answer(request, server);
        if let [true] = server.turn([stdin().as_fd()], None, answer).unwrap() {
            break;
        }
    }
}

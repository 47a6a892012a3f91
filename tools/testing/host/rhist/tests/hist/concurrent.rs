// SPDX-License-Identifier: GPL-2.0

//! Reading while hits are being counted.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use super::events::*;

/// The number after `word` in `file`.
fn total(file: &str, word: &str) -> u64 {
    let (_, rest) = file.rsplit_once(word).unwrap();
    rest.lines().next().unwrap().trim().parse().unwrap()
}

/// Checks that totals agree with the entries above them and returns hits and drops.
fn check(file: &str) -> (u64, u64) {
    let hitcounts = file
        .lines()
        .filter_map(|line| line.split_once("} hitcount:"));
    let hitcounts: Vec<u64> = hitcounts.map(|(_, n)| n.trim().parse().unwrap()).collect();
    assert!(hitcounts.is_sorted() && !hitcounts.contains(&0));
    let hits = total(file, "Hits:");
    assert_eq!(hits, hitcounts.iter().sum::<u64>());
    assert_eq!(total(file, "Entries:"), hitcounts.len() as u64);
    (hits, total(file, "Dropped:"))
}

#[test]
fn totals_agree_with_entries() {
    const HITS: i32 = 20_000;
    let hist = hist(&sched_waking(), "keys=pid:size=128");
    let (hist, done) = (&hist, &AtomicBool::new(false));
    thread::scope(|scope| {
        let counting: Vec<_> = (0..CPUS)
            .map(|cpu| {
                scope.spawn(move || {
                    for n in 0..HITS {
                        waking(b"", n * 7 % 150).hit_in(hist, cpu, &[0; 16]);
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let (mut hits, mut drops) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let now = check(&hist_file(hist));
                assert!(now.0 >= hits && now.1 >= drops);
                (hits, drops) = now;
            }
        });
        for thread in counting {
            thread.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let (hits, drops) = check(&hist_file(hist));
    assert_eq!(hits + drops, CPUS as u64 * HITS as u64);
    assert_eq!((hist.hits(), hist.drops()), (hits, drops));
    assert!(drops > 0);
}

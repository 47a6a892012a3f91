// SPDX-License-Identifier: GPL-2.0

//! Tests' access to a map: to the counts so far and in an interval, and to its worker.

extern crate alloc as std_alloc;

use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        rcu,
        Arc, //
    },
};

use crate::{
    event::Moment,
    map::{
        Beat,
        Elt,
        Generation,
        Interval,
        Map,
        Other,
        PerMap,
        Policy,
        Request,
        Tending,
        Totals,
        Wake, //
    },
};

/// Hits of all entries so far.
pub fn hits(map: &Map) -> u64 {
    map.hits(&|| Ok(())).expect("no signal")
}

/// Hits in an element of `other` so far.
pub fn hits_in(map: &Map, other: Other) -> u64 {
    totals(map).first.column(other.number(), 0)
}

/// All counts so far.
pub fn totals(map: &Map) -> PerMap<Totals> {
    map.totals(GFP_KERNEL, &|| Ok(())).expect("memory")
}

/// The first columns of a key so far.
pub fn columns<const N: usize>(map: &Map, key: &[u8]) -> [u64; N] {
    columns_in(&map.contents(), &totals(map).first, key)
}

/// The first columns of a key of `contents` in `totals`; 0 if it is not an entry.
pub fn columns_in<const N: usize>(contents: &Generation, totals: &Totals, key: &[u8]) -> [u64; N] {
    let elt = contents.lookup(key);
    elt.map_or([0; N], |elt| {
        core::array::from_fn(|column| totals.column(elt.number(), column))
    })
}

/// The key of an entry, of which no other task takes it out meanwhile.
pub fn key(elt: Elt<'_>) -> std_alloc::vec::Vec<u8> {
    elt.key_words().flat_map(u64::to_ne_bytes).collect()
}

/// The entries of `contents` with hits in `totals`: the key and the first columns of each.
#[cfg(not(loom))]
pub fn entries<'a, const N: usize>(
    contents: &'a Generation,
    totals: &'a Totals,
) -> impl Iterator<Item = (std_alloc::vec::Vec<u8>, [u64; N])> + 'a {
    let has_hits = |elt: &Elt<'_>| totals.column(elt.number(), 0) > 0;
    contents.elts().filter(has_hits).map(|elt| {
        let columns = core::array::from_fn(|column| totals.column(elt.number(), column));
        (key(elt), columns)
    })
}

/// The moment that is so many nanoseconds after the boot.
pub const fn moment(boot_ns: u64) -> Moment {
    Moment {
        boot_ns,
        real_ns: boot_ns + 1_600_000_000_000_000_000,
    }
}

/// Adds a reader of intervals, whose first one begins at the next edge. Returns its identity.
pub fn add_reader(map: &Map) -> u64 {
    map.begin_intervals(moment(0)).expect("memory");
    map.add_reader(None, GFP_KERNEL).expect("memory")
}

/// Adds a reader of intervals, whose first one begins with the map. Returns its identity.
pub fn add_reader_from_begin(map: &Map) -> u64 {
    map.begin_intervals(moment(0)).expect("memory");
    map.add_reader(Some(moment(0)), GFP_KERNEL).expect("memory")
}

/// Makes a cut in all its steps, with its edge at `edge`.
pub fn cut(map: &Map, edge: u64) {
    drop(map.cut(moment(edge)).expect("no other work"));
    map.fold(|| ());
    rcu::synchronize_rcu();
    map.end_cut();
}

/// Requests of a map, which wake nobody.
pub fn request() -> Arc<Request> {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(&self) {}
    }
    request_to(Nobody)
}

/// Requests of a map, which call `wake`.
pub fn request_to(wake: impl Wake + 'static) -> Arc<Request> {
    let wake: std_alloc::boxed::Box<dyn Wake> = std_alloc::boxed::Box::new(wake);
    let request = Request::new(KBox::of(wake).expect("memory"));
    Arc::new(request, GFP_KERNEL).expect("memory")
}

/// Begins to tend a map, from which no entry is taken out.
pub fn tending(map: &Map) -> Tending {
    let policy = Policy {
        idle_ns: None,
        taken: 0,
        wide_vars: 0,
        recycle: false,
        max_bytes: || usize::MAX,
        active: Arc::new(Atomic::new(1), GFP_KERNEL).expect("memory"),
    };
    Tending::new(map, policy).expect("memory")
}

/// Makes beats until the worker is done at `now_ns`.
pub fn beats(map: &Map, tending: &mut Tending, now_ns: u64) {
    loop {
        match map.beat(tending, now_ns, || ()) {
            Beat::At(_) => return,
            Beat::Again => (),
            // Dropping it waits, too.
            Beat::GracePeriod(Some(retired)) => drop(retired),
            Beat::GracePeriod(None) => rcu::synchronize_rcu(),
        }
    }
}

/// Replaces the table of a map by another one.
pub fn renew(map: &Map) {
    let mut tending = tending(map);
    tending.renew(false);
    let mut now_ns = 0;
    while !tending.is_at_rest() {
        beats(map, &mut tending, now_ns);
        // The worker lets readers end, but not for longer.
        now_ns += 1_000_000_000;
    }
}

/// Takes the interval of a reader up to the last cut; or its last one, if that ends at `until`.
pub fn take(map: &Map, reader: u64, until: Option<Moment>) -> Result<Interval> {
    map.take_interval(reader, map.zero_totals(GFP_KERNEL)?, until)
}

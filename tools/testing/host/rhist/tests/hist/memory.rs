// SPDX-License-Identifier: GPL-2.0

//! Any allocation may fail.

use kernel::error::code::ENOMEM;
use kernel::fault;
use rhist::hist::debug;
use rhist::hist::render;
use rhist::text::Text;
use rhist::trigger::Error;

use super::events::*;

#[test]
fn building() {
    for params in [
        "keys=pid",
        "keys=comm:size=128:sort=comm.descending",
        "keys=cpu",
        "keys=pid-prio,-(pid):vals=pid*2+prio/3",
        "keys=common_pid.execname:size=128",
        "keys=pid.hex,comm,7:vals=prio.percent,hitcount:nohitcount:sort=prio,pid",
    ] {
        let event = sched_waking();
        let (result, allocations) = fault::each(
            || build(&event, params).map(drop),
            |failed| assert_eq!(failed, Err(Error::silent(ENOMEM)), "{params}"),
        );
        assert_eq!(result, Ok(()));
        assert!(allocations > 5, "{params}: {allocations}");
    }
}

#[test]
fn describing_an_event() {
    use rhist::event::EventDesc;
    use rhist::event::EventField;
    use rhist::event::FilterType;
    let describe = || {
        let mut event = EventDesc::new(b"system", b"name")?;
        let field = EventField::new(b"field", b"u32", 8, 4, false, FilterType::Other, false)?;
        event.add(field)
    };
    let (result, allocations) = fault::each(describe, |failed| assert_eq!(failed, Err(ENOMEM)));
    assert_eq!((result, allocations), (Ok(()), 5));
}

#[test]
fn showing() {
    let event = sched_waking();
    let (pids, comms) = (hist(&event, "keys=pid"), hist(&event, "keys=comm"));
    for pid in 0..100 {
        waking(b"comm", pid).hit(&pids);
        waking(b"comm", pid).hit(&comms);
    }
    let views = || [view(&pids), view(&comms)].into_iter();
    let whole = |show: &dyn Fn(&mut Text) -> kernel::error::Result| {
        let (result, allocations) = fault::each(
            || {
                let mut out = Text::new();
                show(&mut out)
            },
            |failed| assert_eq!(failed, Err(ENOMEM)),
        );
        assert_eq!(result, Ok(()));
        allocations
    };
    assert!(whole(&|out| render::hist_file(out, views())) > 20);
    assert!(
        whole(&|out| render::triggers(
            out,
            b"",
            [&b"traceoff:unlimited\n"[..]].into_iter(),
            views()
        )) > 1
    );
    assert!(whole(&|out| debug::hist_debug_file(out, views().map(|v| (v, &b"p"[..])))) > 1);
}

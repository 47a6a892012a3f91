// SPDX-License-Identifier: GPL-2.0

//! Any allocation may fail.

use kernel::error::code::ENOMEM;
use kernel::fault;
use rhist::hist::show;
use rhist::text::Text;
use rhist::trigger::Error;
use rhist::trigger::ErrorText;

use super::events::*;
use super::world::*;

#[test]
fn building() {
    for params in [
        "keys=pid",
        "keys=comm:size=128:sort=comm.descending",
        "keys=cpu",
        "keys=pid,common_stacktrace:size=128",
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

/// Triggers with variables and actions. A failed one leaves nothing, not even a helper trigger.
#[test]
fn adding() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts0=common_timestamp.usecs,c=comm,s=common_stacktrace if prio > 0",
    );
    let before = world.trigger_file("sched_waking");
    for params in [
        "keys=next_pid:a=next_prio,b=$a:vals=$a",
        "keys=next_pid:lat=common_timestamp.usecs-$ts0,e=common_pid.execname,x=sched.sched_waking.$c,st=$s",
        "keys=next_pid:lat=$ts0:onmax($lat).save(next_comm,prev_prio):onchange($lat).snapshot()",
        "keys=next_pid:onmatch(sched.sched_waking).small(next_prio)",
        "keys=next_pid:onmatch(sched.sched_waking).latency($ts0,next_pid)",
        "keys=next_pid:onmatch(sched.sched_waking).small(target_cpu):onmatch(sched.sched_waking).text(comm)",
        "keys=next_pid:onmatch(sched.sched_waking).trace(stacked,$s,sched.sched_waking.$ts0)",
    ] {
        let command = format!("hist:{params}");
        let (result, allocations) = fault::each(
            || world.write("sched_switch", command.as_bytes()),
            |failed| {
                // As in C, a helper's error is not passed on.
                let error = failed.unwrap_err();
                let helper = error.text == Some(ErrorText::HistCreateFail);
                assert!(error.errno == ENOMEM || helper, "{params}: {error:?}");
                assert_eq!((world.count(), world.users()), (1, 0), "{params}");
                assert_eq!(world.trigger_file("sched_waking"), before, "{params}");
            },
        );
        assert_eq!(result, Ok(()), "{params}");
        assert!(allocations > 20, "{params}: {allocations}");
        let remove = format!("!{command}");
        let (result, _) = fault::each(
            || world.write("sched_switch", remove.as_bytes()),
            |failed| assert_eq!(failed.unwrap_err().errno, ENOMEM, "{params}"),
        );
        assert_eq!(result, Ok(()), "{params}");
        assert_eq!((world.count(), world.users()), (1, 0), "{params}");
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
    assert!(whole(&|out| show_file(out, views())) > 20);
    assert!(whole(&|out| show_jsonl(out, views(), &Functions)) > 20);
    assert!(
        whole(&|out| show::triggers(
            out,
            b"",
            [&b"traceoff:unlimited\n"[..]].into_iter(),
            views()
        )) > 1
    );
    assert!(whole(&|out| show::hist_debug_file(out, views())) > 1);
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid,comm:x=prio:onmax($x).save(comm,prio):onchange($x).snapshot():onmax($x).small(prio)",
    );
    world.hit("sched_waking", &waking(b"comm", 5), NOW);
    let hist = world.histogram("sched_waking", 0);
    let views = || [view(&hist)].into_iter();
    assert!(whole(&|out| show_file(out, views())) > 10);
    assert!(whole(&|out| show_jsonl(out, views(), &Functions)) > 10);
    assert!(whole(&|out| show::hist_debug_file(out, views())) > 1);
}

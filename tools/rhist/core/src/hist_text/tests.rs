// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::measure::cpu_ms;
use crate::table::Key;
use crate::table::Value;

/// A file with one histogram of this trigger and these entries.
fn file(trigger: &str, entries: &[&str]) -> String {
    let (count, entries) = (entries.len(), entries.concat());
    format!(
        "# event histogram\n#\n# trigger info: {trigger} [active]\n#\n\n{entries}\nTotals:\n    Hits: 9\n    Entries: {count}\n    Dropped: 0\n"
    )
}

/// Formats a parsed entry: keys, hits, values, and the fields stored with the maximum.
fn shown(trigger: &str, entry: &str) -> String {
    match read(file(trigger, &[entry]).as_bytes()) {
        Err(error) => error.to_string(),
        Ok(histograms) => {
            let row = &histograms[0].table.rows[0];
            format!("{:?} {} {:?} {:?}", row.keys, row.hits, row.values, row.worst)
        }
    }
}

#[test]
fn values_without_a_bucket() {
    let dist = |rest: &str| {
        shown(
            "hist:keys=x:vals=hitcount,a.dist,b:sort=hitcount:size=2048",
            &format!(
                "{{ x:          1 }} hitcount:          9  a.dist:  count:          9  min:          1  p50:          1  \
                 max:          7  avg:          2{rest}  b:          5\n"
            ),
        )
    };
    assert!(dist("").contains("Number(5)"), "{}", dist(""));
    assert_eq!(dist("  without bucket:          3"), dist(""));
}

#[test]
fn forms_that_are_rare() {
    let long = "x".repeat(60);
    let entries = [
        // A stack in a field of a synthetic event: the first line follows without a newline.
        (
            "hist:keys=stack.stacktrace,pid:vals=hitcount:sort=hitcount:size=2048",
            "{ stack.stacktrace         schedule+0x1/0x2\n         0x12\n, pid:          7} hitcount:          1\n",
        ),
        (
            "hist:keys=stack.stacktrace:vals=hitcount:sort=hitcount:size=2048",
            "{ stack.stacktrace} hitcount:          1\n",
        ),
        // Format of older kernels.
        (
            "hist:keys=stacktrace:vals=hitcount:sort=hitcount:size=2048",
            "{ stacktrace:\n         f+0x1/0x2 [mod]\n} hitcount:          1\n",
        ),
        (
            "hist:keys=id.syscall:vals=hitcount:sort=hitcount:size=2048",
            "{ id: unknown_syscall               [18446744073709551615] } hitcount:          1\n",
        ),
        (
            "hist:keys=common_cpucpu,$x,a.b.$y:vals=hitcount:sort=hitcount:size=2048",
            "{ cpu:          3, x:          1, a.b.$y:          2 } hitcount:          1\n",
        ),
        (
            "hist:keys=a.log2:vals=hitcount,b.percent,c.graph,d-e,f.hex:x=lat,size=2,y=b-c:sort=hitcount:size=2048",
            "{ a: ~ 2^64 } hitcount:          1  b (%):[ERROR]  c:              [ERROR]  f:         ff\n",
        ),
        (
            "hist:keys=name:vals=hitcount:x=lat:sort=hitcount:size=2048:onmatch(s.e).t(a,b):onmax($x).save(name,pid)",
            &format!("{{ name: {long} }} hitcount:          1\n\tmax:         12  name: {long}  pid:          3\n"),
        ),
        (
            "hist:keys=name:vals=hitcount,(a-b).dist:sort=hitcount:size=2048",
            "{ name:         12                                         } hitcount:          1  (a-b).dist:  count:          1  min:         -2  p50:          -  max:          7  avg:          1\n",
        ),
    ];
    let shown: Vec<String> = entries.iter().map(|(trigger, entry)| shown(trigger, entry)).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn the_cpu_twice() {
    // C's name for a distribution over CPUs.
    let trigger = "hist:keys=common_cpucommon_cpu.log2:vals=hitcount,common_cpucommon_cpu:sort=hitcount:size=2048";
    let entry = "{ common_cpu: ~ 2^1  } hitcount:          3  common_cpu:          6\n";
    let histograms = read(file(trigger, &[entry]).as_bytes()).unwrap();
    let table = &histograms[0].table;
    assert_eq!(table.rows[0].keys[..], [Key::Range { first: 2, last: 2 }]);
    assert_eq!(table.rows[0].values, [Value::Number(6)]);
    assert_eq!(
        (table.keys[0].name.as_str(), table.values[0].name.as_str()),
        ("common_cpu", "common_cpu")
    );
}

#[test]
fn says_what_is_wrong() {
    let plain = "hist:keys=pid:vals=hitcount:sort=hitcount:size=2048";
    let entry = "{ pid:          3 } hitcount:          1\n";
    let whole = file(plain, &[entry]);
    let wrong = [
        "# tracer: nop\n".to_owned(),
        whole.replace(" [active]", ""),
        whole.replace("hitcount:sort", "pid:sort"),
        whole.replace("\nTotals", "\nSnapshot taken\n"),
        whole.replace("    Dropped: 0\n", ""),
        whole.replace("Entries: 1", "Entries: 2"),
        whole.replace("hitcount:          1", "hitcount: 18446744073709551616"),
        whole.replace("pid:  ", "tid:  "),
        whole.replace("{ pid", "pid"),
        whole.replace("\nTotals", "{ pid:\n"),
        whole
            .replace("keys=pid", "keys=pid.log2")
            .replace("pid:          3", "pid: ~ 2^65"),
        whole
            .replace("keys=pid", "keys=pid.sym")
            .replace("pid:          3", "pid: [10] 3"),
        format!("{whole}\n\n# event histogram\n"),
    ];
    let said = wrong.iter().map(|text| match read(text.as_bytes()) {
        Ok(histograms) => format!("{histograms:?}"),
        Err(error) => error.to_string(),
    });
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"));
}

#[test]
fn nothing_is_no_histogram() {
    assert_eq!(read(&b""[..]).unwrap(), []);
}

/// Prints milliseconds of CPU time. Run with `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed_of_many_entries() {
    let entry = |n| {
        format!(
            "{{ pid: {n:>10}, comm: {:<50} }} hitcount:          1  lat:       1234\n",
            format!("task-{n}")
        )
    };
    let entries: Vec<String> = (0..131_072).map(entry).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let text = file(
        "hist:keys=pid,comm:vals=hitcount,lat:sort=hitcount:size=131072",
        &entries,
    );
    let start = cpu_ms();
    let histograms = read(text.as_bytes()).unwrap();
    println!("text: {:.1} ms", cpu_ms() - start);
    assert_eq!(histograms[0].table.rows.len(), 131_072);
}

#[test]
fn keys_without_a_row() {
    let read_with = |entries: &[&str], totals: &str| {
        let trigger =
            "hist:keys=x,y:vals=hitcount,a:sort=hitcount:size=2048..4096:expire(1m):full(other):onmax($a).save(b)";
        let text = file(trigger, entries)
            .replace("Entries: 2", "Entries: 1")
            .replace("Dropped: 0\n", totals);
        read(text.as_bytes())
    };
    let entry =
        "{ x:          1, y:          2 } hitcount:          2  a:          5\n\tmax:          3  b:          4\n";
    let other = "{ other } hitcount:          7  a:         50\n";
    let totals = "Dropped: 0\n    Folded: 4\n    Expired: 3\n";
    let histogram = read_with(&[entry, other], totals).unwrap().remove(0);
    let rows: Vec<_> = histogram
        .table
        .rows
        .iter()
        .map(|row| (&row.keys[..], row.hits, &row.values[0]))
        .collect();
    let keys = [Key::Number(1), Key::Number(2)];
    let others = [Key::Other(Other::Expired), Key::Other(Other::Expired)];
    assert_eq!(
        rows,
        [(&keys[..], 2, &Value::Number(5)), (&others[..], 7, &Value::Number(50))]
    );
    assert_eq!(
        (histogram.size, histogram.forgets.is_some(), histogram.entries),
        (4096, true, 1)
    );
    let folded = read_with(&[entry, other], "Dropped: 0\n    Folded: 7\n")
        .unwrap()
        .remove(0);
    assert_eq!(folded.table.rows[1].other(), Some(Other::Folded));
    assert_eq!(folded.forgets, None);
    let none = read_with(&[entry], "Dropped: 0\n    Folded: 0\n    Expired: 0\n")
        .unwrap()
        .remove(0);
    assert_eq!((none.table.rows.len(), none.forgets.is_some()), (1, true));
}

// SPDX-License-Identifier: MIT OR Apache-2.0

use insta::assert_snapshot;
use rhist_core::machine::Functions;

use super::*;

const ALL: Functions = Functions {
    hist_triggers: true,
    synthetic_events: true,
    kprobes: true,
    uprobes: true,
    fprobes: true,
    arguments: true,
    system_calls: true,
    locks: true,
    user_events: true,
};

/// A machine with the events of the fixtures.
fn machine() -> Machine {
    let tracefs = Tracefs::at("../core/tests/fixtures".into()).unwrap();
    Machine {
        release: "7.3.4+deb13-amd64".to_owned(),
        module: Some("0.9.0".to_owned()),
        is_module_installed: true,
        secure_boot: Some(false),
        lockdown: None,
        tracefs: Place::Found(tracefs),
        is_writable: true,
        functions: ALL,
    }
}

fn recipe(name: &str) -> anyhow::Result<Option<Recipe>> {
    let event = match name {
        "runqlat" => "sched:sched_switch",
        "lockwait" => "lock:contention_begin",
        _ => return Ok(None),
    };
    let text = format!(
        "summary = \"\"\nabout = \"\"\n[[count]]\nevent = \"{event}\"\n\
         [variants.exact]\nsummary = \"\"\nprobes = [\"f:{{group}}/x y a=b->c\"]\n"
    );
    Ok(Some(Recipe::parse(&text)?))
}

fn shown(machine: &Machine) -> String {
    let recipes = possible(machine, &["lockwait", "runqlat", "gone"].map(str::to_owned), recipe);
    text(machine, &checks(machine), &recipes)
}

#[test]
fn all_is_there() {
    assert_snapshot!(shown(&machine()));
}

#[test]
fn without_the_module() {
    let without = Machine {
        module: None,
        ..machine()
    };
    let not_installed = Machine {
        is_module_installed: false,
        ..without.clone()
    };
    let functions = Functions {
        fprobes: false,
        arguments: false,
        locks: false,
        user_events: false,
        ..ALL
    };
    let signed = Machine {
        secure_boot: Some(true),
        lockdown: Some("integrity".to_owned()),
        functions,
        ..without
    };
    assert_snapshot!(shown(&not_installed) + "----\n" + &shown(&signed));
}

#[test]
fn nothing_is_possible() {
    let not_mounted = Machine {
        tracefs: Place::NotMounted,
        ..machine()
    };
    let denied = Machine {
        tracefs: Place::Denied,
        ..machine()
    };
    let not_root = Machine {
        is_writable: false,
        ..machine()
    };
    let locked = Machine {
        lockdown: Some("confidentiality".to_owned()),
        ..machine()
    };
    let bare = Machine {
        module: None,
        functions: Functions::default(),
        ..machine()
    };
    assert_snapshot!(
        [not_mounted, denied, not_root, locked, bare]
            .map(|machine| shown(&machine))
            .join("----\n")
    );
}

#[test]
fn json() {
    let machine = Machine {
        module: None,
        ..machine()
    };
    let recipes = possible(&machine, &["lockwait".to_owned()], recipe);
    assert_snapshot!(serde_json::to_string_pretty(&as_json(&machine, &checks(&machine), &recipes)).unwrap());
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist doctor`: reports what this machine can measure, and how to enable the rest.

use std::path::Path;
use std::process::ExitCode;

use rhist_core::machine::Lack;
use rhist_core::machine::Machine;
use rhist_core::machine::Place;
use rhist_core::recipe::Measure;
use rhist_core::recipe::Recipe;
use rhist_core::table::Text;
use rhist_core::tracefs::Tracefs;
use serde_json::Value;
use serde_json::json;

use super::ls::print;
use crate::options::Format;
use crate::recipes;

/// Questions that histograms cannot answer, with the tools that can.
const NEVER: [(&str, &str); 2] = [
    (
        "a line for each event, as opensnoop and execsnoop print",
        "trace-cmd, or bpftrace",
    ),
    ("hardware counters, such as cycles and cache misses", "perf stat"),
];

/// A requirement that a machine meets or lacks.
struct Check {
    name: &'static str,
    is_there: bool,
    /// Finding, for people.
    text: String,
    /// Command or setting that helps. Empty if nothing helps, or if no help is needed.
    advice: String,
}

impl Check {
    fn new(name: &'static str, is_there: bool, found: impl Into<String>, else_: (&str, &str)) -> Self {
        let (text, advice) = match is_there {
            true => (found.into(), String::new()),
            false => (else_.0.to_owned(), else_.1.to_owned()),
        };
        Self {
            name,
            is_there,
            text,
            advice,
        }
    }
}

/// A recipe, or one of its variants, with its missing requirements.
struct Possible {
    /// Name with the option of the variant: `syscount --errors`.
    name: String,
    lacks: Vec<Lack>,
}

/// Examines this machine. Exits with 1 if nothing can be measured.
pub fn run(format: Format) -> anyhow::Result<ExitCode> {
    let machine = Machine::look(Path::new("/"), Tracefs::find());
    let checks = checks(&machine);
    let recipes = possible(&machine, &recipes::names(), recipes::find);
    let text = match format {
        Format::Json => format!("{}\n", as_json(&machine, &checks, &recipes)),
        _ => text(&machine, &checks, &recipes),
    };
    print(&text)?;
    Ok(if machine.can_measure() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn checks(machine: &Machine) -> Vec<Check> {
    let mut checks = vec![tracefs_check(machine)];
    if let Place::Found(_) = machine.tracefs {
        checks.push(Check::new(
            "permission",
            machine.is_writable,
            "you may make triggers",
            (
                "you may not make triggers",
                "sudo, or access for a group: see rhist's security.rst",
            ),
        ));
    }
    checks.push(module_check(machine));
    checks.push(match machine.lockdown.as_deref() {
        None => Check::new("lockdown", true, "none", ("", "")),
        Some("confidentiality") => {
            let text = "confidentiality: the kernel refuses all tracing";
            Check::new("lockdown", false, "", (text, "boot without lockdown=confidentiality"))
        }
        Some(other) => Check::new(
            "lockdown",
            true,
            format!("{other}: only signed modules are loaded"),
            ("", ""),
        ),
    });
    if let Place::Found(_) = machine.tracefs {
        checks.extend(function_checks(machine));
    }
    checks
}

fn tracefs_check(machine: &Machine) -> Check {
    match &machine.tracefs {
        Place::Found(tracefs) => Check::new("tracefs", true, tracefs.kernel().display().to_string(), ("", "")),
        Place::Denied => Check::new("tracefs", false, "", ("you may not read it", "sudo")),
        Place::NotMounted => Check::new(
            "tracefs",
            false,
            "",
            ("not mounted", "mount -t tracefs tracefs /sys/kernel/tracing"),
        ),
    }
}

fn module_check(machine: &Machine) -> Check {
    let without = "without it the kernel's own histograms are used, which cost more and can do less";
    let version = machine.module.as_deref().unwrap_or_default();
    let advice = match (machine.is_module_installed, machine.secure_boot) {
        (true, Some(true)) => {
            "modprobe rhist; if the kernel rejects its key, enroll it for Secure Boot: mokutil --import /var/lib/dkms/mok.pub, \
             and reboot"
                .to_owned()
        }
        (true, _) => "modprobe rhist".to_owned(),
        (false, _) => format!("apt install rhist-modules-{}, or rhist-dkms", machine.release),
    };
    let state = if machine.is_module_installed {
        "not loaded"
    } else {
        "not installed"
    };
    Check::new(
        "module",
        machine.module.is_some(),
        format!("rhist {version}"),
        (&format!("{state}: {without}"), &advice),
    )
}

fn function_checks(machine: &Machine) -> Vec<Check> {
    let functions = &machine.functions;
    let config = |option: &str| format!("a kernel with {option}");
    let rows = [
        (
            "hist triggers",
            functions.hist_triggers,
            "the kernel's own",
            "none of its own",
            "CONFIG_HIST_TRIGGERS",
        ),
        (
            "synthetic events",
            functions.synthetic_events,
            "yes",
            "no",
            "CONFIG_SYNTH_EVENTS",
        ),
        (
            "kprobes",
            functions.kprobes,
            "any instruction of the kernel",
            "no",
            "CONFIG_KPROBE_EVENTS",
        ),
        (
            "uprobes",
            functions.uprobes,
            "any instruction of a program",
            "no",
            "CONFIG_UPROBE_EVENTS",
        ),
        (
            "fprobes",
            functions.fprobes,
            "any function of the kernel, at little cost",
            "no",
            "CONFIG_FPROBE_EVENTS",
        ),
        (
            "BTF arguments",
            functions.arguments,
            "arguments of functions by name",
            "no",
            "CONFIG_PROBE_EVENTS_BTF_ARGS",
        ),
        (
            "system calls",
            functions.system_calls,
            "yes",
            "no tracepoints",
            "CONFIG_FTRACE_SYSCALLS",
        ),
        (
            "locks",
            functions.locks,
            "yes",
            "no tracepoints",
            "tracepoints of locks (5.19 and later)",
        ),
        (
            "user events",
            functions.user_events,
            "events of programs",
            "no",
            "CONFIG_USER_EVENTS, or the module",
        ),
    ];
    rows.map(|(name, is_there, found, missing, option)| Check::new(name, is_there, found, (missing, &config(option))))
        .into()
}

/// Checks which of these recipes are possible. Skips recipes that do not parse.
fn possible(
    machine: &Machine,
    names: &[String],
    find: impl Fn(&str) -> anyhow::Result<Option<Recipe>>,
) -> Vec<Possible> {
    let mut all = Vec::new();
    for name in names {
        let Ok(Some(recipe)) = find(name) else { continue };
        let mut add = |name: String, measure: &Measure| {
            all.push(Possible {
                name,
                lacks: machine.lacks(measure),
            })
        };
        add(name.clone(), &recipe.measure);
        for (variant, other) in &recipe.variants {
            add(format!("{name} --{variant}"), &other.measure);
        }
    }
    all
}

fn text(machine: &Machine, checks: &[Check], recipes: &[Possible]) -> String {
    let mut text = format!(
        "Linux {}, rhist {}\n\n",
        escape(&machine.release),
        env!("CARGO_PKG_VERSION")
    );
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    for check in checks {
        let mark = if check.is_there { "ok" } else { "--" };
        text += &format!("  {mark}  {:width$}  {}\n", check.name, escape(&check.text));
        if !check.advice.is_empty() {
            text += &format!("      {:width$}  needs: {}\n", "", escape(&check.advice));
        }
    }
    let (here, gone): (Vec<&Possible>, Vec<&Possible>) = recipes.iter().partition(|recipe| recipe.lacks.is_empty());
    if let Place::Found(_) = machine.tracefs {
        text += &format!("\nRecipes: {} of {} are possible here\n", here.len(), recipes.len());
        let width = gone
            .iter()
            .map(|recipe| recipe.name.chars().count())
            .max()
            .unwrap_or_default();
        for Possible { name, lacks } in gone {
            let why: Vec<String> = lacks.iter().map(lack).collect();
            text += &format!("  --  {:width$}  {}\n", escape(name), escape(&why.join(", ")));
        }
    }
    text += "\nNot possible with histograms:\n";
    for (what, instead) in NEVER {
        text += &format!("  {what}: {instead}\n");
    }
    let verdict = match machine.can_measure() {
        true => "Ready to measure: try rhist runqlat -d 3",
        false => "Nothing can be measured here yet",
    };
    text + &format!("\n{verdict}\n")
}

fn lack(lack: &Lack) -> String {
    match lack {
        Lack::Event(event) => format!("no event {event}"),
        Lack::Probes("BTF") => "no arguments of functions by name".to_owned(),
        Lack::Probes(kind) => format!("no {kind}s"),
    }
}

fn as_json(machine: &Machine, checks: &[Check], recipes: &[Possible]) -> Value {
    let check =
        |check: &Check| json!({"name": check.name, "ok": check.is_there, "found": check.text, "needs": check.advice});
    let recipe = |recipe: &Possible| {
        json!({
            "name": recipe.name,
            "possible": recipe.lacks.is_empty(),
            "lacks": recipe.lacks.iter().map(lack).collect::<Vec<_>>(),
        })
    };
    json!({
        "kernel": machine.release,
        "version": env!("CARGO_PKG_VERSION"),
        "can_measure": machine.can_measure(),
        "module": machine.module,
        "secure_boot": machine.secure_boot,
        "lockdown": machine.lockdown,
        "checks": checks.iter().map(check).collect::<Vec<_>>(),
        "recipes": recipes.iter().map(recipe).collect::<Vec<_>>(),
        "never": NEVER.map(|(what, instead)| json!({"what": what, "instead": instead})),
    })
}

fn escape(text: &str) -> String {
    Text::from(text).to_string()
}

#[cfg(test)]
mod tests;

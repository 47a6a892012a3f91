// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of signals, as `kill -l` prints them, on x86, arm, riscv and most others; alpha, mips and
//! sparc have their own.

const NAMES: [&str; 32] = [
    "",
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Real-time signals for programs. The C libraries reserve 32 and 33, or more.
const REAL_TIME: std::ops::RangeInclusive<i128> = 34..=64;

pub(super) fn name(number: i128) -> Option<String> {
    if REAL_TIME.contains(&number) {
        return Some(format!("SIGRTMIN+{}", number - REAL_TIME.start()));
    }
    let name = NAMES.get(usize::try_from(number).ok()?)?;
    (!name.is_empty()).then(|| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals() {
        use rustix::process::Signal;
        for (signal, expected) in [
            (Signal::HUP, "SIGHUP"),
            (Signal::KILL, "SIGKILL"),
            (Signal::TERM, "SIGTERM"),
            (Signal::CHILD, "SIGCHLD"),
            (Signal::WINCH, "SIGWINCH"),
            (Signal::SYS, "SIGSYS"),
        ] {
            assert_eq!(name(signal.as_raw().into()).as_deref(), Some(expected));
        }
        assert_eq!(name(34).as_deref(), Some("SIGRTMIN+0"));
        assert_eq!(name(64).as_deref(), Some("SIGRTMIN+30"));
        for number in [-1, 0, 32, 33, 65] {
            assert_eq!(name(number), None);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0

//! The end of all rights of a process that is going to read a hostile file: afterwards it can read
//! standard input, write to standard output, and compute.
//!
//! * Limits (`setrlimit()`) of time and memory. With the limits 0 of files and processes, it opens
//!   nothing, makes no socket, and starts nothing; kernels without seccomp have these, too.
//! * Neither capabilities nor, if it was root, root's files, and none to come
//!   (`PR_SET_NO_NEW_PRIVS`).
//! * A filter of system calls (seccomp). A kernel that is built without it gets a network without
//!   devices instead.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use rustix::process::Gid;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::Signal;
use rustix::process::Uid;
use rustix::process::getrlimit;
use rustix::process::set_parent_process_death_signal;
use rustix::process::setrlimit;
use rustix::thread;
use rustix::thread::CapabilitySet;
use rustix::thread::CapabilitySets;
use rustix::thread::UnshareFlags;
use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompCmpArgLen;
use seccompiler::SeccompCmpOp;
use seccompiler::SeccompCondition;
use seccompiler::SeccompFilter;
use seccompiler::SeccompRule;

/// Seconds of a processor that it may use.
pub const SECONDS: u64 = 10;

/// Bytes of its address space, the program included.
pub const MEMORY: u64 = 512 << 20;

/// User and group that own nothing (`nobody`).
const NOBODY: u32 = 65534;

/// Capabilities to become another user. A parent without `CAP_KILL` could not end the process any
/// more.
const TO_BECOME: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// A right that could not be given up.
#[derive(Debug)]
pub struct Kept(&'static str, io::Error);

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot give up {}: {}", self.0, self.1)
    }
}

/// Becomes another user, for good, with the rights of that one only. For the present user, does
/// nothing.
///
/// # Errors
///
/// This process may not do so; or its parent could not end it any more.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    if rustix::process::geteuid().as_raw() == user {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    if !thread::capabilities(None)?.effective.contains(TO_BECOME) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    become_other(user, group)?;
    end_with_parent();
    Ok(())
}

/// Gives up all rights of this process, which must have a single thread.
///
/// # Errors
///
/// One of the rights is kept, so nothing hostile may be read.
pub fn confine() -> Result<(), Kept> {
    // Where memory is short, it ends first. Without `/proc`, it does not matter.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    limit(SECONDS)?;
    give_up_rights()?;
    // Becoming another user has undone it.
    end_with_parent();
    filter()
}

/// Has this process killed when the thread that started it ends.
pub fn end_with_parent() {
    // The parent ends it otherwise, unless that has been killed.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Sets the limits, with so many seconds of a processor. A limit that is lower already stays.
fn limit(seconds: u64) -> Result<(), Kept> {
    for (resource, most, what) in [
        (Resource::Cpu, seconds, "time"),
        (Resource::As, MEMORY, "memory"),
        (Resource::Fsize, 0, "files"),
        (Resource::Nofile, 0, "files"),
        (Resource::Nproc, 0, "processes"),
        (Resource::Core, 0, "core dumps"),
    ] {
        let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).map_err(|error| Kept(what, error.into()))?;
    }
    Ok(())
}

/// Becomes nobody if it may, and gives up all capabilities.
fn give_up_rights() -> Result<(), Kept> {
    let kept = |what| move |error: rustix::io::Errno| Kept(what, error.into());
    thread::set_no_new_privs(true).map_err(kept("new rights"))?;
    let now = thread::capabilities(None).map_err(kept("capabilities"))?;
    if now.effective.contains(TO_BECOME) {
        become_nobody().map_err(kept("its user"))?;
    }
    if thread::secure_computing_mode().is_err() {
        // Fails where users may not do that; it cannot make a socket anyway.
        #[expect(deprecated, reason = "the function without unsafe is the deprecated one")]
        let _ = thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET);
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // A service without any may not be allowed this call.
    let has_any = !(now.effective | now.permitted | now.inheritable).is_empty();
    match has_any {
        true => thread::set_capabilities(None, none).map_err(kept("capabilities")),
        false => Ok(()),
    }
}

fn become_other(user: Uid, group: Gid) -> rustix::io::Result<()> {
    thread::set_thread_groups(&[])?;
    thread::set_thread_res_gid(group, group, group)?;
    thread::set_thread_res_uid(user, user, user)
}

fn become_nobody() -> rustix::io::Result<()> {
    match become_other(Uid::from_raw(NOBODY), Gid::from_raw(NOBODY)) {
        // A user namespace, such as a container's, may lack this user, or forbid it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => Ok(()),
        other => other,
    }
}

/// Allows only the system calls that reading, computing and writing need. All others fail with
/// `EPERM`.
fn filter() -> Result<(), Kept> {
    let kept = |error| Kept("system calls", error);
    let program = program().map_err(|error| kept(io::Error::other(error)))?;
    match seccompiler::apply_filter(&program) {
        Ok(()) => Ok(()),
        Err(seccompiler::Error::Seccomp(error)) if is_missing(&error) => Ok(()),
        Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error)) => Err(kept(error)),
        Err(error) => Err(kept(io::Error::other(error))),
    }
}

/// Whether the kernel is built without seccomp, or without filters.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL))
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let is = |argument, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    let has = |argument, mask: i32, bits: i32| {
        let (mask, bits) = (mask as u64, bits as u64);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), bits)
    };
    let not_executable = has(2, libc::PROT_EXEC, 0)?;
    let anonymous = has(3, libc::MAP_ANONYMOUS, libc::MAP_ANONYMOUS)?;
    let mut calls = BTreeMap::from([
        (
            libc::SYS_read,
            vec![SeccompRule::new(vec![is(0, libc::STDIN_FILENO as u64)?])?],
        ),
        (
            libc::SYS_write,
            vec![SeccompRule::new(vec![is(0, libc::STDOUT_FILENO as u64)?])?],
        ),
        (
            libc::SYS_mmap,
            vec![SeccompRule::new(vec![not_executable.clone(), anonymous])?],
        ),
        (libc::SYS_mprotect, vec![SeccompRule::new(vec![not_executable])?]),
    ]);
    // Memory, locks and signals of its own, and its end. Without a rule, a call is always allowed.
    for call in [
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ] {
        calls.insert(call, Vec::new());
    }
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls, denied, SeccompAction::Allow, architecture)?.try_into()
}

#[cfg(test)]
mod tests;

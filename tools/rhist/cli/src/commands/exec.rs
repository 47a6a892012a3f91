// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist exec`: runs a program with rhist's tracing directory mounted over the kernel's. For
//! programs that know only the kernel's path.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use rhist_core::table::Text;
use rustix::fs::Access;
use rustix::mount::MountPropagationFlags;
use rustix::thread::UnshareFlags;

/// Arguments of `rhist exec`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show the directory of this instance instead
    #[arg(short, long, allow_hyphen_values = true, overrides_with = "instance")]
    pub instance: Option<OsString>,
    /// The program, and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Exit status if the command was not run, and for invalid input.
pub const NOT_RUN: u8 = 125;

/// Path of the kernel's own directory.
const TRACING: &str = "/sys/kernel/tracing";

/// Mount points for rhist's directory. Older programs try the one in debugfs first.
const PLACES: [&str; 2] = ["/sys/kernel/debug/tracing", TRACING];

/// Reason why a command was not run.
#[derive(Debug)]
enum Error {
    NoCommand,
    NotRoot,
    NotFound(OsString),
    NoModule(PathBuf),
    NoInstance { name: OsString, dir: PathBuf },
    Mount(PathBuf, io::Error),
    Exec(OsString, io::Error),
}

impl Error {
    fn status(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            _ => NOT_RUN,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &OsStr| Text::from(name.as_encoded_bytes());
        match self {
            Self::NoCommand => write!(f, "missing COMMAND: rhist exec [-i INSTANCE] COMMAND [ARG]..."),
            Self::NotRoot => {
                write!(
                    f,
                    "only root may do this: mounting a directory over another needs CAP_SYS_ADMIN"
                )
            }
            Self::NotFound(name) => write!(f, "command not found: {}", shown(name)),
            Self::NoModule(dir) => {
                write!(
                    f,
                    "{} does not exist: load the module first, with modprobe rhist",
                    dir.display()
                )
            }
            Self::NoInstance { name, dir } => {
                let (name, dir) = (shown(name), shown(dir.as_os_str()));
                write!(f, "no instance {name}: make it first, with mkdir {dir}")
            }
            Self::Mount(place, error) => write!(f, "cannot mount over {}: {error}", place.display()),
            Self::Exec(name, error) => write!(f, "{}: {error}", shown(name)),
        }
    }
}

/// Runs the command. Returns only on failure.
pub fn run(args: &Args, dry_run: bool) -> anyhow::Result<ExitCode> {
    let dir = match directory(args) {
        Ok(dir) if dry_run => {
            io::stdout().write_all(plan(&dir, &args.command).as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        other => other,
    };
    let error = match dir.and_then(|dir| lay_over(&dir)) {
        Ok(()) => exec(&args.command),
        Err(error) => error,
    };
    say!("rhist: {error}");
    Ok(ExitCode::from(error.status()))
}

/// Checks the requirements, and finds the directory to mount.
fn directory(args: &Args) -> Result<PathBuf, Error> {
    let name = args.command.first().ok_or(Error::NoCommand)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if !is_command(name) {
        return Err(Error::NotFound(name.clone()));
    }
    // Inside another rhist exec, it is mounted already.
    let tracing = Path::new(TRACING);
    let dir = if tracing.join("hist_stats").exists() {
        tracing.to_owned()
    } else {
        tracing.join("rhist")
    };
    if !dir.join("events").is_dir() {
        return Err(Error::NoModule(dir));
    }
    let Some(name) = args.instance.as_ref().filter(|name| !name.is_empty()) else {
        return Ok(dir);
    };
    let dir = dir.join("instances").join(name);
    match dir.join("events").is_dir() {
        true => Ok(dir),
        false => Err(Error::NoInstance {
            name: name.clone(),
            dir,
        }),
    }
}

/// Returns whether a program exists, in `PATH` unless the name is a path.
fn is_command(name: &OsString) -> bool {
    let is_program = |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if name.as_encoded_bytes().contains(&b'/') {
        return is_program(Path::new(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_program(&folder.join(name)))
}

/// Formats the steps as shell commands, for `--dry-run`.
fn plan(dir: &Path, command: &[OsString]) -> String {
    let mut text = "unshare --mount\n".to_owned();
    for place in PLACES.iter().filter(|place| Path::new(place).is_dir()) {
        text += &format!("mount --bind {} {place}\n", Text::from(dir.to_string_lossy().as_ref()));
    }
    let words = command
        .iter()
        .map(|word| Text::from(word.as_encoded_bytes()).to_string());
    text + "exec " + &words.collect::<Vec<_>>().join(" ") + "\n"
}

/// Mounts `dir` over the kernel's directory, for this process and its children only.
fn lay_over(dir: &Path) -> Result<(), Error> {
    let error = |place: &'static str| move |error: rustix::io::Errno| Error::Mount(place.into(), error.into());
    // The function was renamed to an unsafe one because of flags that unshare file descriptors;
    // this flag does not.
    #[expect(deprecated, reason = "the function without unsafe is the deprecated one")]
    rustix::thread::unshare(UnshareFlags::NEWNS).map_err(error(TRACING))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(error("/"))?;
    for place in PLACES.into_iter().filter(|place| Path::new(place).is_dir()) {
        rustix::mount::mount_bind(dir, place).map_err(error(place))?;
    }
    Ok(())
}

/// Replaces this process by the command. Returns only on failure.
fn exec(command: &[OsString]) -> Error {
    match command.split_first() {
        Some((name, arguments)) => {
            let error = std::process::Command::new(name).args(arguments).exec();
            Error::Exec(name.clone(), error)
        }
        None => Error::NoCommand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs() {
        let there = |name: &str| is_command(&name.into());
        assert!(there("sh") && there("/bin/sh"));
        assert!(!there("/bin") && !there("/etc/passwd") && !there("no-such-program") && !there(""));
    }

    #[test]
    fn a_plan_is_safe_to_print() {
        let text = plan(Path::new("/sys/kernel/tracing/rhist"), &["a\x1b[2J".into(), "b".into()]);
        assert!(text.ends_with("exec a\\u{1b}[2J b\n"), "{text}");
    }
}

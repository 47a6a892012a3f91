// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends state changes to systemd (`sd_notify(3)`).

use std::env;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixDatagram;

/// Sends a state such as `READY=1` to the service manager, if it has asked for that.
pub fn notify(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET") {
        // A failure cannot be reported to anyone.
        let _ = send(&socket, state);
    }
}

/// Asks systemd for more time to stop than configured: the kernel needs a moment for each of many
/// histograms.
pub fn notify_progress() {
    notify("EXTEND_TIMEOUT_USEC=20000000");
}

fn send(socket: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    // The receiver may not read, and must not block this process.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("@rhist-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).unwrap();
        let receivers = [
            (path.as_os_str(), UnixDatagram::bind(&path).unwrap()),
            (OsStr::new(&name), UnixDatagram::bind_addr(&abstract_name).unwrap()),
        ];
        for (socket, receiver) in receivers {
            send(socket, "READY=1").unwrap();
            let mut buffer = [0; 32];
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
    }
}

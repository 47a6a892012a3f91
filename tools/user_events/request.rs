// SPDX-License-Identifier: GPL-2.0

//! `request [COUNT]`: an example program with an event of its own. It works like `request.c`, and
//! needs only the standard library.

use std::ffi::c_int;
use std::ffi::c_ulong;
use std::ffi::CStr;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::IoSlice;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// `struct user_reg` of `linux/user_events.h`.
#[repr(C, packed)]
struct UserReg {
    size: u32,
    enable_bit: u8,
    enable_size: u8,
    flags: u16,
    enable_addr: u64,
    name_args: u64,
    write_index: u32,
}

/// `struct user_unreg`.
#[repr(C, packed)]
struct UserUnreg {
    size: u32,
    disable_bit: u8,
    reserved: u8,
    reserved2: u16,
    disable_addr: u64,
}

// As the header's _IOWR() and _IOW() compute them, with the size of a pointer.
const POINTER: c_ulong = (size_of::<usize>() as c_ulong) << 16;
const DIAG_IOCSREG: c_ulong = (3 << 30) | POINTER | ((b'*' as c_ulong) << 8);
const DIAG_IOCSUNREG: c_ulong = (1 << 30) | POINTER | ((b'*' as c_ulong) << 8) | 2;

extern "C" {
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
}

/// A registered event.
struct Event {
    file: File,
    /// Bit 0 is set while the event has a listener. The kernel may write it at any time, so it must
    /// not move.
    enabled: Box<AtomicU32>,
    write_index: u32,
}

impl Event {
    fn register(description: &CStr) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/sys/kernel/tracing/user_events_data")?;
        let enabled = Box::new(AtomicU32::new(0));
        let mut reg = UserReg {
            size: size_of::<UserReg>() as u32,
            enable_bit: 0,
            enable_size: size_of::<AtomicU32>() as u8,
            flags: 0,
            enable_addr: enabled.as_ptr() as u64,
            name_args: description.as_ptr() as u64,
            write_index: 0,
        };
        // SAFETY: `reg` is a valid structure. `enabled` is an atomic, and lives until `drop`, which
        // unregisters it.
        if unsafe { ioctl(file.as_raw_fd(), DIAG_IOCSREG, &mut reg) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let write_index = reg.write_index;
        Ok(Self {
            file,
            enabled,
            write_index,
        })
    }

    fn enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the event had a listener: the last one may just have stopped.
    fn write(&self, pieces: &[&[u8]]) -> bool {
        let index = self.write_index.to_ne_bytes();
        let mut all = vec![IoSlice::new(&index)];
        all.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
        // All of an event has to be in one call.
        (&self.file).write_vectored(&all).is_ok()
    }
}

impl Drop for Event {
    /// Memory that the kernel writes to has to be given back before it is used for something else.
    fn drop(&mut self) {
        let unreg = UserUnreg {
            size: size_of::<UserUnreg>() as u32,
            disable_bit: 0,
            reserved: 0,
            reserved2: 0,
            disable_addr: self.enabled.as_ptr() as u64,
        };
        // SAFETY: The structure is valid.
        unsafe { ioctl(self.file.as_raw_fd(), DIAG_IOCSUNREG, &unreg) };
    }
}

fn main() {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(u32::MAX), |count| count.parse());
    let count = count.expect("COUNT is a number");
    // Without the kernel's help, go on without a listener.
    let event = Event::register(c"request u32 id;s32 status;__rel_loc char[] path")
        .inspect_err(|error| eprintln!("request: no event: {error}"));
    let mut told = 0;
    for id in 1..=count {
        let (path, status) =
            [(c"/", 200i32), (c"/about", 200), (c"/missing", 404)][id as usize % 3];
        if let Some(event) = event.as_ref().ok().filter(|event| event.enabled()) {
            let path = path.to_bytes_with_nul();
            // Where the text is, 0 bytes behind this field, and how long.
            let place = (path.len() as u32) << 16;
            let fields = [id.to_ne_bytes(), status.to_ne_bytes(), place.to_ne_bytes()];
            told += u32::from(event.write(&[fields.as_flattened(), path]));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(event);
    println!("{told} of {count}");
}

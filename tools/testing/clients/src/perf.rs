// SPDX-License-Identifier: GPL-2.0

//! perf's records of an event: the samples of all processors, as `perf record -a` reads them.

use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

/// `struct perf_event_attr` of `linux/perf_event.h`, in its first version.
#[repr(C)]
struct Attr {
    type_: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_SAMPLE_RAW: u64 = 1 << 10;
const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_SAMPLE: u32 = 9;

/// Offsets of `data_head` and `data_tail` in the first page, a `u64` each.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Pages of data of one processor: a power of two.
const PAGES: usize = 64;

/// Bytes of a page.
fn page() -> usize {
    // SAFETY: No requirements.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Records of one processor.
struct Ring {
    pages: NonNull<u8>,
    _fd: OwnedFd,
}

impl Ring {
    fn open(id: u64, cpu: i32) -> io::Result<Self> {
        let attr = Attr {
            type_: PERF_TYPE_TRACEPOINT,
            size: size_of::<Attr>() as u32,
            config: id,
            sample_period: 1,
            sample_type: PERF_SAMPLE_RAW,
            read_format: 0,
            flags: 0,
            wakeup_events: 1,
            bp_type: 0,
            config1: 0,
        };
        let (all, none) = (-1, -1);
        // SAFETY: `attr` is a valid structure, and the kernel writes at most its size.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attr, all, cpu, none, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: The descriptor has just been opened, so it has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // SAFETY: New memory.
        let pages = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (1 + PAGES) * page(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if pages == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pages = NonNull::new(pages.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { pages, _fd: fd })
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: The counter is aligned, within the first page, and the kernel writes it as a
        // whole.
        unsafe { &*self.pages.as_ptr().add(at).cast() }
    }

    /// Takes the raw data of all samples out of the buffer.
    fn drain(&self, out: &mut Vec<Vec<u8>>) {
        let head = self.counter(HEAD).load(Ordering::Acquire) as usize;
        let mut tail = self.counter(TAIL).load(Ordering::Relaxed) as usize;
        // SAFETY: Only bytes between tail and head are read, which the kernel does not write.
        let data =
            unsafe { slice::from_raw_parts(self.pages.as_ptr().add(page()), PAGES * page()) };
        let bytes = |from: usize, len: usize| -> Vec<u8> {
            (from..from + len).map(|at| data[at % data.len()]).collect()
        };
        while tail < head {
            let header = bytes(tail, 8);
            let kind = u32::from_ne_bytes(header[..4].try_into().unwrap());
            let size = u16::from_ne_bytes(header[6..].try_into().unwrap()) as usize;
            assert_ne!(kind, PERF_RECORD_LOST, "perf lost records");
            if kind == PERF_RECORD_SAMPLE {
                let len = u32::from_ne_bytes(bytes(tail + 8, 4).try_into().unwrap());
                out.push(bytes(tail + 12, len as usize));
            }
            tail += size;
        }
        self.counter(TAIL).store(tail as u64, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `open` has mapped the pages, and no reference to them is left.
        unsafe { libc::munmap(self.pages.as_ptr().cast(), (1 + PAGES) * page()) };
    }
}

/// A recording of one event, of all processes. perf listens while this exists.
pub struct Recording(Vec<Ring>);

impl Recording {
    /// Starts recording an event, given by its folder in `events/user_events`.
    pub fn begin(event: &str) -> io::Result<Self> {
        let id = fs::read_to_string(super::event_file(event, "id"))?;
        let id = id.trim().parse().map_err(io::Error::other)?;
        // SAFETY: No requirements.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let rings: io::Result<_> = (0..cpus as i32).map(|cpu| Ring::open(id, cpu)).collect();
        Ok(Self(rings?))
    }

    /// Returns the records since the last call, in order for each processor.
    pub fn records(&self) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for ring in &self.0 {
            ring.drain(&mut out);
        }
        out
    }
}

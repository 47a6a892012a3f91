// SPDX-License-Identifier: GPL-2.0

//! The file `user_events_data`, with which programs register and write events, and the equivalent
//! device `/dev/user_events`.

use super::{
    abi::{
        UserReg,
        UserRegOriginal,
        UserUnreg, //
    },
    description::Description,
    event::{
        EventUse,
        Keep, //
    },
    quota::Charge,
    service::UserEvents,
    table::{
        Chunk,
        IndexTable, //
    },
};
use crate::{
    errno::eaddrinuse,
    limits::USER_DESCRIPTION_MAX,
    rust::{
        memory,
        tracefs::Special,
        user_mm::UserBit, //
    },
};
use core::mem::MaybeUninit;
use kernel::{
    ioctl::{
        _IOW,
        _IOWR, //
    },
    iov::IovIterSource,
    mm::virt::VmaNew,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};

// The command numbers contain the size of a pointer to the argument, not of the argument.
const DIAG_IOCSREG: u32 = _IOWR::<usize>(b'*' as u32, 0);
const DIAG_IOCSDEL: u32 = _IOW::<usize>(b'*' as u32, 1);
const DIAG_IOCSUNREG: u32 = _IOW::<usize>(b'*' as u32, 2);

/// Maximum size of a payload in bytes. Records of this size fit neither in buffers of ftrace nor of
/// perf.
const MAX_PAYLOAD: usize = 64 << 10;
/// Payloads up to this size are copied to the stack, which is nearly empty in `write(2)`.
const SMALL: usize = 1024;
/// Payloads up to this size fit every buffer: the smallest kind of buffer has one page.
const ALWAYS_FITS: usize = 2048;

/// The file. Each open file has its own write indices.
pub(crate) struct DataFile {
    events: Arc<UserEvents>,
}

impl DataFile {
    pub(crate) fn new(events: Arc<UserEvents>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { events }, GFP_KERNEL)?)
    }
}

/// An open file, with its own write indices.
pub(crate) struct OpenDataFile {
    events: Arc<UserEvents>,
    table: IndexTable,
}

#[vtable]
impl Special for DataFile {
    type OpenState = OpenDataFile;

    fn open(self: &Arc<Self>) -> Result<OpenDataFile> {
        Ok(OpenDataFile {
            events: self.events.clone(),
            table: IndexTable::new(),
        })
    }

    #[inline]
    fn write(file: &OpenDataFile, source: &mut IovIterSource<'_>) -> Result<usize> {
        file.write(source)
    }

    fn ioctl(file: &OpenDataFile, command: u32, arg: usize) -> Result {
        match command {
            DIAG_IOCSREG => file.events.within_limits(|| file.register(arg)),
            DIAG_IOCSDEL => {
                let name = memory::user_string(arg, USER_DESCRIPTION_MAX)?;
                file.events.delete(&name)
            }
            DIAG_IOCSUNREG => file.unregister(arg),
            _ => Err(ENOTTY),
        }
    }

    fn mmap(file: &OpenDataFile, vma: &VmaNew) -> Result {
        file.events.map(vma)
    }
}

// User memory is accessed without the lock of the registry: a program can make a page fault take
// any time.
impl OpenDataFile {
    fn register(&self, arg: usize) -> Result {
        let size = read_size(arg)?;
        if size == UserRegOriginal::SIZE {
            return self.register_original(arg);
        }
        let register = UserReg::parse(&read_struct(arg, size)?)?;
        let addr = register.addr.try_into().map_err(|_| EFAULT)?;
        if !memory::is_user(addr, register.size.into()) {
            return Err(EFAULT);
        }
        let place = UserBit::new(addr, register.bit, register.size)?;
        if self.events.enablers.has(addr, register.bit) {
            return Err(eaddrinuse());
        }
        let text = user_description(register.description)?;
        let description = Description::parse(&text)?;
        let keep = match register.persistent {
            true => Keep::Privileged,
            false => Keep::No,
        };
        let charge = Charge::bit(&self.events.quota)?;
        let spare = self.table.spare(&self.events.quota)?;
        let event = self
            .events
            .find_or_create(description, keep, register.multi)?;
        let index = self.index_of(&event, false, spare)?;
        self.events.enablers.add(place, event, charge)?;
        // As in C, a fault here is ignored: the event is registered, the program only lacks the
        // index.
        let at = UserPtr::from_addr(arg.wrapping_add(UserReg::WRITE_INDEX));
        let _ = UserSlice::new(at, size_of::<u32>()).writer().write(&index);
        Ok(())
    }

    fn register_original(&self, arg: usize) -> Result {
        let size = UserRegOriginal::SIZE;
        let register = UserRegOriginal::parse(&read_struct(arg, size)?);
        let text = user_description(register.description)?;
        let description = Description::parse_original(&text)?;
        // Before the event is created, which would stay if this failed.
        let spare = self.table.spare(&self.events.quota)?;
        let (event, bit) = self.events.find_or_create_original(description)?;
        let index = self.index_of(&event, true, spare)?;
        // A fault is ignored here, too.
        let at = UserPtr::from_addr(arg.wrapping_add(UserRegOriginal::RESULTS));
        let results = [bit, index];
        let _ = UserSlice::new(at, size_of_val(&results))
            .writer()
            .write(&results);
        Ok(())
    }

    /// Finds or adds the index of an event. `spare` comes from [`IndexTable::spare`]. Locks the
    /// registry.
    fn index_of(&self, event: &EventUse, original: bool, mut spare: Option<Chunk>) -> Result<u32> {
        loop {
            let registry = self.events.registry.lock();
            if let Some(index) = self.table.add(event, original, &mut spare) {
                return Ok(index);
            }
            drop(registry);
            spare = self.table.spare(&self.events.quota)?;
        }
    }

    fn unregister(&self, arg: usize) -> Result {
        let unregister = UserUnreg::parse(&read_struct(arg, read_size(arg)?)?)?;
        let addr = unregister.addr.try_into().map_err(|_| ENOENT)?;
        self.events.enablers.remove(addr, unregister.bit)
    }

    /// Writes an event: `source` has the write index, then the payload. May sleep.
    ///
    /// # Errors
    ///
    /// In the order of the checks:
    ///
    /// - `EFAULT` if the index cannot be read, `EINVAL` if it is negative, `ENOENT` if no event of
    ///   this file has it;
    /// - `EINVAL` if the payload is too short;
    /// - `EBADF` if the event is disabled; in the original interface the write succeeds instead;
    /// - `E2BIG` if the payload is too long for one of the buffers, unless `user_events_lossy` is
    ///   set;
    /// - `EFAULT` if the payload cannot be read, or a dynamic field in it is invalid;
    /// - `ENOMEM`.
    #[inline]
    fn write(&self, source: &mut IovIterSource<'_>) -> Result<usize> {
        let total = source.len();
        let index = memory::read_number(source).ok_or(EFAULT)?;
        let index = usize::try_from(index).map_err(|_| EINVAL)?;
        let entry = self.table.get(index).ok_or(ENOENT)?;
        let event = &entry.event;
        let len = source.len();
        if len < event.state().fields().min_size() {
            return Err(EINVAL);
        }
        if !event.state().is_enabled() {
            return if entry.original {
                Ok(total)
            } else {
                Err(EBADF)
            };
        }
        if len > ALWAYS_FITS && (len > MAX_PAYLOAD || len > event.event().limit()) {
            match self.events.settings.lossy {
                false => return Err(E2BIG),
                true if len > MAX_PAYLOAD => return Ok(total),
                // Written to the buffers that are large enough.
                true => (),
            }
        }
        if !event.event().write_direct(source) {
            // Copied first, so that several buffers get the same bytes.
            write_copy(event, source)?;
        }
        Ok(total)
    }
}

/// Copies and checks a payload, then writes it to all buffers that the event is enabled for. May
/// sleep. Out of line, because its stack frame is large.
///
/// # Errors
///
/// `EFAULT` if the payload cannot be read or a dynamic field in it is invalid, `ENOMEM`; nothing is
/// written then.
#[inline(never)]
fn write_copy(event: &EventUse, source: &mut IovIterSource<'_>) -> Result {
    let len = source.len();
    let mut small = [const { MaybeUninit::uninit() }; SMALL];
    // Initialized for large payloads only: even to drop an empty vector calls the allocator.
    let large;
    let payload: &[u8] = match small.get_mut(..len) {
        Some(small) => source.copy_from_iter_raw(small),
        None => {
            let mut bytes = KVec::new();
            source.copy_from_iter_vec(&mut bytes, GFP_KERNEL_ACCOUNT)?;
            large = bytes;
            &large
        }
    };
    if payload.len() != len || !event.state().fields().accept(payload) {
        return Err(EFAULT);
    }
    event.event().write(payload);
    Ok(())
}

/// Copies a description from the memory of the running task.
fn user_description(at: u64) -> Result<KVec<u8>> {
    memory::user_string(at.try_into().map_err(|_| EFAULT)?, USER_DESCRIPTION_MAX)
}

/// Fills `out` from the memory of the running task.
fn read_user(addr: usize, out: &mut [u8]) -> Result {
    let at = UserPtr::from_addr(addr);
    UserSlice::new(at, out.len()).reader().read_slice(out)
}

/// Reads the size at the beginning of a structure, at most a page, or else `E2BIG`.
fn read_size(arg: usize) -> Result<usize> {
    let mut size = [0; size_of::<u32>()];
    read_user(arg, &mut size)?;
    let size = u32::from_ne_bytes(size) as usize;
    if size > PAGE_SIZE {
        return Err(E2BIG);
    }
    Ok(size)
}

/// Reads the first `SIZE` bytes of a structure of `size` bytes, like `copy_struct_from_user()`:
/// `E2BIG` if the rest is not zero. `EINVAL` if the structure is shorter.
fn read_struct<const SIZE: usize>(arg: usize, size: usize) -> Result<[u8; SIZE]> {
    if size < SIZE {
        return Err(EINVAL);
    }
    let mut at = SIZE;
    while at < size {
        let mut rest = [0; 64];
        let len = rest.len().min(size - at);
        let rest = rest.get_mut(..len).ok_or(EINVAL)?;
        read_user(arg.wrapping_add(at), rest)?;
        if rest.iter().any(|&byte| byte != 0) {
            return Err(E2BIG);
        }
        at += len;
    }
    let mut bytes = [0; SIZE];
    read_user(arg, &mut bytes)?;
    Ok(bytes)
}

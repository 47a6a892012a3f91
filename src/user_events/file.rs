// SPDX-License-Identifier: GPL-2.0

//! The file `user_events_data`, where programs register events and write them, and the device that
//! is the same.

use super::abi::UserReg;
use super::abi::UserRegOriginal;
use super::abi::UserUnreg;
use super::description::Description;
use super::registry::EventUse;
use super::registry::Keep;
use super::registry::UserEvents;
use super::table::IndexTable;
use crate::ftrace::memory;
use crate::ftrace::tracefs::Special;
use crate::ftrace::user_mm::UserBit;
use core::mem::MaybeUninit;
use kernel::ioctl::_IOW;
use kernel::ioctl::_IOWR;
use kernel::iov::IovIterSource;
use kernel::mm::virt::VmaNew;
use kernel::page::PAGE_SIZE;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::uaccess::UserPtr;
use kernel::uaccess::UserSlice;

// The size in the numbers is that of a pointer to what is passed.
const DIAG_IOCSREG: u32 = _IOWR::<usize>(b'*' as u32, 0);
const DIAG_IOCSDEL: u32 = _IOW::<usize>(b'*' as u32, 1);
const DIAG_IOCSUNREG: u32 = _IOW::<usize>(b'*' as u32, 2);

/// Bytes of a description at most, with the NUL at its end.
const MAX_DESCRIPTION: isize = 512;

/// Bytes of a payload at most. A record has to fit a buffer, of which no kind takes as much.
const MAX_PAYLOAD: usize = 64 << 10;
/// Payloads up to this are copied to the stack, whose 16 KiB a system call has hardly begun to use.
const SMALL: usize = 1024;
/// Payloads up to this fit every buffer: of all kinds, the smallest one is a page.
const ALWAYS_FITS: usize = 2048;

/// The file; each open one has its own indices.
pub(crate) struct DataFile {
    events: Arc<UserEvents>,
}

impl DataFile {
    pub(crate) fn new(events: Arc<UserEvents>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { events }, GFP_KERNEL)?)
    }
}

/// An open file.
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
            DIAG_IOCSREG => file.register(arg),
            DIAG_IOCSDEL => {
                let name = memory::user_string(arg, MAX_DESCRIPTION)?;
                file.events.registry.lock().delete(&file.events, &name)
            }
            DIAG_IOCSUNREG => file.unregister(arg),
            _ => Err(ENOTTY),
        }
    }

    fn mmap(file: &OpenDataFile, vma: &VmaNew) -> Result {
        file.events.map(vma)
    }
}

// The memory of the program is read, and written to, without the lock of the registry: a program
// may make that take as long as it likes.
impl OpenDataFile {
    fn register(&self, arg: usize) -> Result {
        let size = read_size(arg)?;
        if size == UserRegOriginal::SIZE {
            return self.register_original(arg);
        }
        let register = UserReg::parse(&read_struct(arg, size)?)?;
        let place = UserBit {
            addr: register.addr.try_into().map_err(|_| EFAULT)?,
            bit: register.bit,
            size: register.size,
        };
        if !memory::is_user(place.addr, place.size.into()) {
            return Err(EFAULT);
        }
        if self.events.enablers.has(place.addr, place.bit) {
            return Err(EADDRINUSE);
        }
        let text = user_description(register.description)?;
        let description = Description::parse(&text)?;
        let keep = match register.persistent {
            true => Keep::Privileged,
            false => Keep::No,
        };
        let mut registry = self.events.registry.lock();
        self.table.reserve()?;
        let event = registry.find_or_create(&self.events, description, keep, register.multi)?;
        let index = self.table.add(&event, false);
        drop(registry);
        self.events.enablers.add(place, event)?;
        // A program that cannot be told the index has no use for it.
        let at = UserPtr::from_addr(arg.wrapping_add(UserReg::WRITE_INDEX));
        let _ = UserSlice::new(at, size_of::<u32>()).writer().write(&index);
        Ok(())
    }

    fn register_original(&self, arg: usize) -> Result {
        let size = UserRegOriginal::SIZE;
        let register = UserRegOriginal::parse(&read_struct(arg, size)?);
        let text = user_description(register.description)?;
        let description = Description::parse_original(&text)?;
        let mut registry = self.events.registry.lock();
        // First, so that no event stays that nobody was told of.
        self.table.reserve()?;
        let (event, bit) = registry.find_or_create_original(&self.events, description)?;
        let index = self.table.add(&event, true);
        drop(registry);
        // As above.
        let at = UserPtr::from_addr(arg.wrapping_add(UserRegOriginal::RESULTS));
        let results = [bit, index];
        let _ = UserSlice::new(at, size_of_val(&results))
            .writer()
            .write(&results);
        Ok(())
    }

    fn unregister(&self, arg: usize) -> Result {
        let unregister = UserUnreg::parse(&read_struct(arg, read_size(arg)?)?)?;
        let addr = unregister.addr.try_into().map_err(|_| ENOENT)?;
        self.events.enablers.remove(addr, unregister.bit)
    }

    /// An index and a payload.
    ///
    /// # Errors
    ///
    /// `EFAULT` without a whole index, `EINVAL` for a negative one, `ENOENT` for one that this
    /// file has not given; then `EINVAL` for a payload that is too short, `EBADF` if nobody
    /// listens, which is no error in the original interface; `E2BIG` for a payload that is too long
    /// for one who does, unless the settings have it lost; and `EFAULT` if it cannot be read or
    /// says of something that it is where it is not.
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
                // Those who can take it get it.
                true => (),
            }
        }
        if !event.event().write_direct(source) {
            // If it is enabled more than once, all have to get the same bytes.
            write_copy(event, source)?;
        }
        Ok(total)
    }
}

/// Copies a payload, then writes it to all who have the event enabled, or to none. Out of line, since its
/// frame is large.
///
/// # Errors
///
/// `EFAULT` if it cannot be read or says of something that it is where it is not; `ENOMEM`.
#[inline(never)]
fn write_copy(event: &EventUse, source: &mut IovIterSource<'_>) -> Result {
    let len = source.len();
    let mut small = [const { MaybeUninit::uninit() }; SMALL];
    // Not even made for small ones, since to drop an empty vector calls the allocator.
    let large;
    let payload: &[u8] = match small.get_mut(..len) {
        Some(small) => source.copy_from_iter_raw(small),
        None => {
            let mut bytes = KVec::new();
            source.copy_from_iter_vec(&mut bytes, GFP_KERNEL)?;
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

/// The text that a request points to.
fn user_description(at: u64) -> Result<KVec<u8>> {
    memory::user_string(at.try_into().map_err(|_| EFAULT)?, MAX_DESCRIPTION)
}

/// Fills `out` from the memory of the running task.
fn read_user(addr: usize, out: &mut [u8]) -> Result {
    let at = UserPtr::from_addr(addr);
    UserSlice::new(at, out.len()).reader().read_slice(out)
}

/// The size that a structure begins with.
fn read_size(arg: usize) -> Result<usize> {
    let mut size = [0; size_of::<u32>()];
    read_user(arg, &mut size)?;
    let size = u32::from_ne_bytes(size) as usize;
    if size > PAGE_SIZE {
        return Err(E2BIG);
    }
    Ok(size)
}

/// A structure of a size that it says itself. It may be longer than we know of if what we do not
/// know of is zero.
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

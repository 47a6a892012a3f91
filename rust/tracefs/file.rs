// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the VFS for rhist's files.
//!
//! All functions are called in task context with the file open, which pins the module, or being
//! opened.

use super::gate;
use super::gate::ModulePin;
use super::object::dentry_of;
use super::object::forget;
use super::object::object_of;
use super::object::NodeOps;
use super::object::Object;
use super::KernelFile;
use super::UserBuffer;
use crate::ftrace::bindings;
use crate::ftrace::poll;
use crate::ftrace::poll::Mask;
use crate::ftrace::poll::PollTable;
use kernel::error::from_result;
use kernel::error::to_result;
use kernel::ffi;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::sync::Mutex;

/// The operations of rhist's files: of those that can be polled, or of the others.
pub(super) fn file_operations<N: NodeOps>(polls: bool) -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open::<N>),
        read: Some(read::<N>),
        write: Some(write::<N>),
        poll: polls.then_some(poll::<N>),
        mmap: Some(mmap::<N>),
        llseek: Some(llseek),
        release: Some(release::<N>),
        ..Default::default()
    }
}

/// The operations of a file of the kernel that has `real`, for the beginning of its [`Object`].
pub(super) fn kernel_operations<N: NodeOps>(
    real: bindings::file_operations,
) -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open_kernel::<N>),
        release: Some(release_kernel::<N>),
        ..real
    }
}

/// The object of a file that has the kernel's operations, and these.
///
/// # Safety
///
/// `file` must be open, or being opened, with [`kernel_operations`].
unsafe fn kernel_file<'a, N: NodeOps>(
    file: *mut bindings::file,
) -> (&'a Object<N>, &'a bindings::file_operations) {
    // SAFETY: The operations of the file are those in the object, at its very beginning. The inode
    // of the object's dentry is a file of the kernel.
    unsafe {
        let object = &*(*file).f_op.cast::<Object<N>>();
        (object, &*bindings::rhist_inode_fop(object.real.inode()))
    }
}

/// # Safety
///
/// For [`kernel_operations`] only.
unsafe extern "C" fn open_kernel<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: `file` is being opened, and is one of the kernel's.
        let (object, real) = unsafe { kernel_file::<N>(file) };
        // The kernel has removed the file, whose data may be gone, while this one was kept.
        if object.real.removed() {
            // SAFETY: The file is being opened, by its path.
            return Err(unsafe { forget::<N>(dentry_of(file), ENODEV) });
        }
        if let Some(open) = real.open {
            // SAFETY: The kernel's `open` is given an inode that differs in nothing that it looks
            // at.
            to_result(unsafe { open(inode, file) })?;
        }
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// For [`kernel_operations`] only.
unsafe extern "C" fn release_kernel<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open_kernel` kept it.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `file` is open, and is one of the kernel's.
    let (_, real) = unsafe { kernel_file::<N>(file) };
    match real.release {
        // SAFETY: As in `open_kernel`.
        Some(release) => unsafe { release(inode, file) },
        None => 0,
    }
}

/// An open file of rhist.
#[pin_data]
struct OpenFile<N: NodeOps> {
    open: N::OpenState,
    /// The text that is being read, made by a read at the beginning of the file.
    #[pin]
    text: Mutex<Option<N::ReadBuf>>,
    /// The kernel's file in whose place it is, if there is one.
    kernel: Option<KernelFile>,
}

/// # Safety
///
/// `file` must have been opened by [`open`].
unsafe fn open_file<'a, N: NodeOps>(file: *mut bindings::file) -> &'a OpenFile<N> {
    // SAFETY: `open` has put it there, and it stays until `release`.
    unsafe { &*(*file).private_data.cast() }
}

/// The object of a file of rhist; `ENODEV` if the kernel has removed the directory that it is in.
///
/// # Safety
///
/// `file` must be a file of rhist that is open, or being opened.
unsafe fn present<'a, N: NodeOps>(file: *mut bindings::file) -> Result<&'a Object<N>> {
    // SAFETY: `file` is open, and its inode is ours.
    let object = unsafe { object_of::<N>((*file).f_inode) };
    (!object.real.removed()).then_some(object).ok_or(ENODEV)
}

/// # Safety
///
/// For `file_operations` of rhist's files only.
unsafe extern "C" fn open<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: No requirements.
        to_result(unsafe { bindings::rhist_locked_down() })?;
        // SAFETY: The file is being opened, and keeps the inode.
        let object = unsafe { object_of::<N>(inode) };
        if object.real.removed() {
            // SAFETY: As above.
            return Err(unsafe { forget::<N>(dentry_of(file), ENODEV) });
        }
        let kernel = match object.behind() {
            // SAFETY: The file is being opened; what it is in the place of is in the same tracefs.
            Ok(real) => Some(unsafe { KernelFile::open(file, &real) }?),
            Err(err) if err == ENOENT => None,
            Err(err) => return Err(err),
        };
        // SAFETY: As above.
        let (mode, flags) = unsafe { ((*file).f_mode, (*file).f_flags) };
        let write = mode & bindings::RHIST_FMODE_WRITE != 0;
        // Emptying it cannot be undone, so nothing may fail after that.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let truncate = write && flags & bindings::O_TRUNC != 0;
        let open = object.node.open(&object.real, kernel.as_ref(), truncate)?;
        let open = memory.write_pin_init(pin_init!(OpenFile::<N> {
            open,
            text <- kernel::new_mutex!(None),
            kernel,
        }))?;
        // SAFETY: Nothing moves it out of the box until `release`.
        let open = KBox::into_raw(unsafe { Pin::into_inner_unchecked(open) });
        // SAFETY: The file is ours while it is opened.
        unsafe { (*file).private_data = open.cast() };
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn release<N: NodeOps>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` kept it.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `open` put a box there, and this is the end of the file.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<OpenFile<N>>()) });
    0
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn read<N: NodeOps>(
    file: *mut bindings::file,
    buf: *mut ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    let read = || -> Result<isize> {
        // SAFETY: The file is open, and `pos` is valid.
        let (open, at) = unsafe { (open_file::<N>(file), *pos) };
        let mut text = open.text.lock();
        if at == 0 || text.is_none() {
            *text = None;
            // SAFETY: As above.
            let object = unsafe { present::<N>(file) }?;
            let kernel = open.kernel.as_ref();
            *text = Some(object.node.read(&object.real, kernel, &open.open)?);
        }
        let bytes: &[u8] = text.as_ref().map_or(&[], AsRef::as_ref);
        // SAFETY: `bytes` is valid for its length; the rest is what the VFS gave.
        let done = unsafe {
            bindings::simple_read_from_buffer(
                buf.cast(),
                count,
                pos,
                bytes.as_ptr().cast(),
                bytes.len(),
            )
        };
        Ok(done)
    };
    read().unwrap_or_else(|err| err.to_errno() as isize)
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn write<N: NodeOps>(
    file: *mut bindings::file,
    buf: *const ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    if count == 0 {
        return 0;
    }
    let write = || -> Result {
        // SAFETY: The file is open.
        let (object, open) = unsafe { (present::<N>(file)?, open_file::<N>(file)) };
        let data = UserBuffer::new(buf, count);
        object.node.write(&object.real, open.kernel.as_ref(), &data)
    };
    match write() {
        Ok(()) => {
            // SAFETY: `pos` is valid.
            unsafe { *pos = (*pos).wrapping_add(count as i64) };
            count as isize
        }
        Err(err) => err.to_errno() as isize,
    }
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn poll<N: NodeOps>(
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
) -> Mask {
    let poll = || -> Result<Mask> {
        // SAFETY: The file is open, and both are what the VFS gave.
        let (open, table) = unsafe { (open_file::<N>(file), PollTable::new(file, table)) };
        let kernel = open.kernel.as_ref();
        // When an event goes, the kernel wakes only those who poll its own file.
        if kernel.is_some_and(|kernel| kernel.poll_error(&table)) {
            return Ok(poll::ERR);
        }
        // SAFETY: As above.
        let object = unsafe { present::<N>(file) }?;
        object.node.poll(&object.real, kernel, &open.open, &table)
    };
    poll().unwrap_or(poll::ERR)
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn mmap<N: NodeOps>(
    file: *mut bindings::file,
    vma: *mut bindings::vm_area_struct,
) -> ffi::c_int {
    from_result(|| {
        // SAFETY: The file is open; the VFS gives a new area, locked. The type is the same one, from
        // another run of bindgen.
        let (open, vma) = unsafe { (open_file::<N>(file), VmaNew::from_raw(vma.cast())) };
        // SAFETY: As above.
        let object = unsafe { present::<N>(file) }?;
        object
            .node
            .map(&object.real, open.kernel.as_ref(), vma)
            .map(|()| 0)
    })
}

/// As a sequence file if it can be read; otherwise there is only one position.
///
/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn llseek(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: `llseek` is called with the position locked.
    unsafe {
        let target = if (*file).f_mode & bindings::RHIST_FMODE_READ == 0 {
            Some(0)
        } else {
            match whence as u32 {
                bindings::SEEK_SET => Some(offset),
                bindings::SEEK_CUR => (*file).f_pos.checked_add(offset),
                _ => None,
            }
        };
        match target {
            Some(target) if target >= 0 => {
                (*file).f_pos = target;
                target
            }
            _ => i64::from(EINVAL.to_errno()),
        }
    }
}

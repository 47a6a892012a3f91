// SPDX-License-Identifier: GPL-2.0

//! What the VFS does with files of a mirror.
//!
//! All functions are called in task context with the file open, which pins the module, or being
//! opened.

use super::gate;
use super::gate::Entry;
use super::mirror::dentry_of;
use super::mirror::forget;
use super::mirror::node_of;
use super::mirror::Kind;
use super::mirror::Node;
use super::KernelFile;
use super::Opened;
use super::Overlay;
use super::Written;
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

/// The operations of files of the overlay: those that can be polled, or the others.
pub(super) fn file_operations<T: Overlay>(polls: bool) -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open::<T>),
        read: Some(read::<T>),
        write: Some(write::<T>),
        poll: polls.then_some(poll::<T>),
        mmap: Some(mmap::<T>),
        llseek: Some(llseek),
        release: Some(release::<T>),
        ..Default::default()
    }
}

/// The operations of a file of the kernel that has `real`, for the beginning of a [`Node`] of kind
/// [`Kind::Kernel`].
pub(super) fn kernel_operations<T: Overlay>(
    real: bindings::file_operations,
) -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open_kernel::<T>),
        release: Some(release_kernel::<T>),
        ..real
    }
}

/// The node of a file that has the kernel's operations, and these.
///
/// # Safety
///
/// `file` must be open, or being opened, with [`kernel_operations`].
unsafe fn kernel_file<'a, T: Overlay>(
    file: *mut bindings::file,
) -> (&'a Node<T>, &'a bindings::file_operations) {
    // SAFETY: The operations of the file are those in the node, at its very beginning. The inode
    // of the node's dentry is a file of the kernel.
    unsafe {
        let node = &*(*file).f_op.cast::<Node<T>>();
        (node, &*bindings::rhist_inode_fop(node.real.inode()))
    }
}

/// # Safety
///
/// For [`kernel_operations`] only.
unsafe extern "C" fn open_kernel<T: Overlay>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let entry = Entry::new()?;
        // SAFETY: `file` is being opened, and is one of the kernel's.
        let (node, real) = unsafe { kernel_file::<T>(file) };
        // The kernel removed the file, and what it works on may be gone, while somebody held ours.
        if node.real.removed() {
            // SAFETY: The file is being opened, by its path.
            return Err(unsafe { forget::<T>(dentry_of(file), ENODEV) });
        }
        if let Some(open) = real.open {
            // SAFETY: The kernel's `open` is given an inode that differs in nothing that it looks
            // at.
            to_result(unsafe { open(inode, file) })?;
        }
        entry.keep();
        Ok(0)
    })
}

/// # Safety
///
/// For [`kernel_operations`] only.
unsafe extern "C" fn release_kernel<T: Overlay>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open_kernel` kept it.
    let _entry = unsafe { Entry::of_file() };
    // SAFETY: `file` is open, and is one of the kernel's.
    let (_, real) = unsafe { kernel_file::<T>(file) };
    match real.release {
        // SAFETY: As in `open_kernel`.
        Some(release) => unsafe { release(inode, file) },
        None => 0,
    }
}

/// An open file of the overlay.
#[pin_data]
struct OpenFile<T: Overlay> {
    open: T::Open,
    /// The text that is being read, made by a read at the beginning of the file.
    #[pin]
    text: Mutex<Option<T::Text>>,
    /// The kernel's file in whose place it is, if there is one.
    kernel: Option<KernelFile>,
}

/// # Safety
///
/// `file` must have been opened by [`open`].
unsafe fn open_file<'a, T: Overlay>(file: *mut bindings::file) -> &'a OpenFile<T> {
    // SAFETY: `open` has put it there, and it stays until `release`.
    unsafe { &*(*file).private_data.cast() }
}

/// The overlay, and what it wants to know of a file of it; `ENODEV` if the kernel has removed what
/// the file is about.
///
/// # Safety
///
/// `file` must be one of the overlay that is open, or being opened.
unsafe fn opened<'a, T: Overlay>(
    file: *mut bindings::file,
    kernel: Option<&'a KernelFile>,
) -> Result<(&'a T, Opened<'a>)> {
    // SAFETY: `file` is open, and its inode is ours.
    let node = unsafe { node_of::<T>((*file).f_inode) };
    let Kind::Ours(dir, index) = node.kind else {
        return Err(EINVAL);
    };
    if node.real.removed() {
        return Err(ENODEV);
    }
    let opened = Opened {
        name: T::files(dir).get(index).ok_or(EINVAL)?.name,
        dir: node.tracing().ok_or(EINVAL)?,
        event: node.event(),
        kernel,
    };
    Ok((&node.mirror().overlay, opened))
}

/// # Safety
///
/// For `file_operations` of files of the overlay only.
unsafe extern "C" fn open<T: Overlay>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let entry = Entry::new()?;
        // SAFETY: No requirements.
        to_result(unsafe { bindings::rhist_locked_down() })?;
        // SAFETY: The file is being opened, and keeps the inode.
        let node = unsafe { node_of::<T>(inode) };
        if node.real.removed() {
            // SAFETY: As above.
            return Err(unsafe { forget::<T>(dentry_of(file), ENODEV) });
        }
        let kernel = match node.behind() {
            // SAFETY: The file is being opened; what it is in the place of is in the same tracefs.
            Ok(real) => Some(unsafe { KernelFile::open(file, &real) }?),
            Err(err) if err == ENOENT => None,
            Err(err) => return Err(err),
        };
        // SAFETY: As above.
        let (overlay, opened) = unsafe { opened::<T>(file, kernel.as_ref()) }?;
        // SAFETY: As above.
        let (mode, flags) = unsafe { ((*file).f_mode, (*file).f_flags) };
        let write = mode & bindings::RHIST_FMODE_WRITE != 0;
        // Emptying it cannot be undone, so nothing may fail after that.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let open = overlay.open(&opened, write && flags & bindings::O_TRUNC != 0)?;
        let open = memory.write_pin_init(pin_init!(OpenFile::<T> {
            open,
            text <- kernel::new_mutex!(None),
            kernel,
        }))?;
        // SAFETY: Nothing moves it out of the box until `release`.
        let open = KBox::into_raw(unsafe { Pin::into_inner_unchecked(open) });
        // SAFETY: The file is ours while it is opened.
        unsafe { (*file).private_data = open.cast() };
        entry.keep();
        Ok(0)
    })
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn release<T: Overlay>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` kept it.
    let _entry = unsafe { Entry::of_file() };
    // SAFETY: `open` put a box there, and this is the end of the file.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<OpenFile<T>>()) });
    0
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn read<T: Overlay>(
    file: *mut bindings::file,
    buf: *mut ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    let read = || -> Result<isize> {
        // SAFETY: The file is open, and `pos` is valid.
        let (open, at) = unsafe { (open_file::<T>(file), *pos) };
        let mut text = open.text.lock();
        if at == 0 || text.is_none() {
            *text = None;
            // SAFETY: As above.
            let (overlay, opened) = unsafe { opened::<T>(file, open.kernel.as_ref()) }?;
            *text = Some(overlay.read(&opened, &open.open)?);
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
unsafe extern "C" fn write<T: Overlay>(
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
        let (overlay, opened) = unsafe { opened::<T>(file, open_file::<T>(file).kernel.as_ref()) }?;
        overlay.write(&opened, &Written::new(buf, count))
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
unsafe extern "C" fn poll<T: Overlay>(
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
) -> Mask {
    let poll = || -> Result<Mask> {
        // SAFETY: The file is open, and both are what the VFS gave.
        let (open, table) = unsafe { (open_file::<T>(file), PollTable::new(file, table)) };
        let kernel = open.kernel.as_ref();
        // Nobody but the kernel knows when what a file is about goes, and it tells only those who
        // poll its own file.
        if kernel.is_some_and(|kernel| kernel.poll_error(&table)) {
            return Ok(poll::ERR);
        }
        // SAFETY: As above.
        let (overlay, opened) = unsafe { opened::<T>(file, kernel) }?;
        overlay.poll(&opened, &open.open, &table)
    };
    poll().unwrap_or(poll::ERR)
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn mmap<T: Overlay>(
    file: *mut bindings::file,
    vma: *mut bindings::vm_area_struct,
) -> ffi::c_int {
    from_result(|| {
        // SAFETY: The file is open; the VFS gives a new area, locked. The type is the same one, from
        // another run of bindgen.
        let (open, vma) = unsafe { (open_file::<T>(file), VmaNew::from_raw(vma.cast())) };
        // SAFETY: As above.
        let (overlay, opened) = unsafe { opened::<T>(file, open.kernel.as_ref()) }?;
        overlay.map(&opened, vma).map(|()| 0)
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

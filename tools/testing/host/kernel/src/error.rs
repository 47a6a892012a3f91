// SPDX-License-Identifier: GPL-2.0

//! Errors: negative `errno` values.

use core::fmt;
use core::num::NonZeroI32;

use crate::alloc::AllocError;

/// A kernel error. Its number lies in `-4095..=-1`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(NonZeroI32);

/// Result of an operation that can fail with a kernel error.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

impl Error {
    /// The error of a negative `errno`; `EINVAL` for any other number.
    pub fn from_errno(errno: i32) -> Error {
        if (-4095..0).contains(&errno) {
            Self::new(errno)
        } else {
            code::EINVAL
        }
    }

    /// The negative `errno`.
    pub fn to_errno(self) -> i32 {
        self.0.get()
    }

    const fn new(errno: i32) -> Error {
        match NonZeroI32::new(errno) {
            Some(errno) => Error(errno),
            None => panic!("errno 0"),
        }
    }
}

macro_rules! codes {
    ($($name:ident $number:literal $text:literal,)*) => {
        /// The error numbers of `include/uapi/asm-generic/errno*.h` and `include/linux/errno.h`.
        pub mod code {
            $(
                #[doc = $text]
                pub const $name: super::Error = super::Error::new(-$number);
            )*
        }

        impl fmt::Debug for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match -self.0.get() {
                    $($number => f.write_str(stringify!($name)),)*
                    errno => f.debug_tuple("Error").field(&errno).finish(),
                }
            }
        }
    };
}

codes! {
    EPERM 1 "Operation not permitted.",
    ENOENT 2 "No such file or directory.",
    ESRCH 3 "No such process.",
    EINTR 4 "Interrupted system call.",
    EIO 5 "I/O error.",
    ENXIO 6 "No such device or address.",
    E2BIG 7 "Argument list too long.",
    EBADF 9 "Bad file number.",
    EAGAIN 11 "Try again.",
    ENOMEM 12 "Out of memory.",
    EACCES 13 "Permission denied.",
    EFAULT 14 "Bad address.",
    EBUSY 16 "Device or resource busy.",
    EEXIST 17 "File exists.",
    ENODEV 19 "No such device.",
    ENOTDIR 20 "Not a directory.",
    EISDIR 21 "Is a directory.",
    EINVAL 22 "Invalid argument.",
    EMFILE 24 "Too many open files.",
    ENOTTY 25 "Not a typewriter.",
    EFBIG 27 "File too large.",
    ENOSPC 28 "No space left on device.",
    ESPIPE 29 "Illegal seek.",
    EROFS 30 "Read-only file system.",
    EPIPE 32 "Broken pipe.",
    EDOM 33 "Math argument out of domain of func.",
    ERANGE 34 "Math result not representable.",
    ENAMETOOLONG 36 "File name too long.",
    ENOSYS 38 "Invalid system call number.",
    ELOOP 40 "Too many symbolic links encountered.",
    ENODATA 61 "No data available.",
    EOVERFLOW 75 "Value too large for defined data type.",
    EOPNOTSUPP 95 "Operation not supported on transport endpoint.",
    ERESTARTSYS 512 "Restart the system call.",
    ENOTSUPP 524 "Operation is not supported.",
}

impl From<AllocError> for Error {
    fn from(_: AllocError) -> Error {
        code::ENOMEM
    }
}

impl From<core::num::TryFromIntError> for Error {
    fn from(_: core::num::TryFromIntError) -> Error {
        code::EINVAL
    }
}

impl From<core::str::Utf8Error> for Error {
    fn from(_: core::str::Utf8Error) -> Error {
        code::EINVAL
    }
}

impl From<fmt::Error> for Error {
    fn from(_: fmt::Error) -> Error {
        code::EINVAL
    }
}

impl From<core::convert::Infallible> for Error {
    fn from(never: core::convert::Infallible) -> Error {
        match never {}
    }
}

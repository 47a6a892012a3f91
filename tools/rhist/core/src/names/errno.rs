// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of errors on x86, arm, riscv and most others; alpha, mips, parisc and sparc have their
//! own.

/// Names by number, from 0.
const NAMES: [&str; 135] = [
    "",
    "EPERM",
    "ENOENT",
    "ESRCH",
    "EINTR",
    "EIO",
    "ENXIO",
    "E2BIG",
    "ENOEXEC",
    "EBADF",
    "ECHILD",
    "EAGAIN",
    "ENOMEM",
    "EACCES",
    "EFAULT",
    "ENOTBLK",
    "EBUSY",
    "EEXIST",
    "EXDEV",
    "ENODEV",
    "ENOTDIR",
    "EISDIR",
    "EINVAL",
    "ENFILE",
    "EMFILE",
    "ENOTTY",
    "ETXTBSY",
    "EFBIG",
    "ENOSPC",
    "ESPIPE",
    "EROFS",
    "EMLINK",
    "EPIPE",
    "EDOM",
    "ERANGE",
    "EDEADLK",
    "ENAMETOOLONG",
    "ENOLCK",
    "ENOSYS",
    "ENOTEMPTY",
    "ELOOP",
    "",
    "ENOMSG",
    "EIDRM",
    "ECHRNG",
    "EL2NSYNC",
    "EL3HLT",
    "EL3RST",
    "ELNRNG",
    "EUNATCH",
    "ENOCSI",
    "EL2HLT",
    "EBADE",
    "EBADR",
    "EXFULL",
    "ENOANO",
    "EBADRQC",
    "EBADSLT",
    "",
    "EBFONT",
    "ENOSTR",
    "ENODATA",
    "ETIME",
    "ENOSR",
    "ENONET",
    "ENOPKG",
    "EREMOTE",
    "ENOLINK",
    "EADV",
    "ESRMNT",
    "ECOMM",
    "EPROTO",
    "EMULTIHOP",
    "EDOTDOT",
    "EBADMSG",
    "EOVERFLOW",
    "ENOTUNIQ",
    "EBADFD",
    "EREMCHG",
    "ELIBACC",
    "ELIBBAD",
    "ELIBSCN",
    "ELIBMAX",
    "ELIBEXEC",
    "EILSEQ",
    "ERESTART",
    "ESTRPIPE",
    "EUSERS",
    "ENOTSOCK",
    "EDESTADDRREQ",
    "EMSGSIZE",
    "EPROTOTYPE",
    "ENOPROTOOPT",
    "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT",
    "EOPNOTSUPP",
    "EPFNOSUPPORT",
    "EAFNOSUPPORT",
    "EADDRINUSE",
    "EADDRNOTAVAIL",
    "ENETDOWN",
    "ENETUNREACH",
    "ENETRESET",
    "ECONNABORTED",
    "ECONNRESET",
    "ENOBUFS",
    "EISCONN",
    "ENOTCONN",
    "ESHUTDOWN",
    "ETOOMANYREFS",
    "ETIMEDOUT",
    "ECONNREFUSED",
    "EHOSTDOWN",
    "EHOSTUNREACH",
    "EALREADY",
    "EINPROGRESS",
    "ESTALE",
    "EUCLEAN",
    "ENOTNAM",
    "ENAVAIL",
    "EISNAM",
    "EREMOTEIO",
    "EDQUOT",
    "ENOMEDIUM",
    "EMEDIUMTYPE",
    "ECANCELED",
    "ENOKEY",
    "EKEYEXPIRED",
    "EKEYREVOKED",
    "EKEYREJECTED",
    "EOWNERDEAD",
    "ENOTRECOVERABLE",
    "ERFKILL",
    "EHWPOISON",
    "EFTYPE",
];

/// Names of errors that stay within the kernel, from [`FIRST_INTERNAL`].
const INTERNAL: [&str; 20] = [
    "ERESTARTSYS",
    "ERESTARTNOINTR",
    "ERESTARTNOHAND",
    "ENOIOCTLCMD",
    "ERESTART_RESTARTBLOCK",
    "EPROBE_DEFER",
    "EOPENSTALE",
    "ENOPARAM",
    "",
    "EBADHANDLE",
    "ENOTSYNC",
    "EBADCOOKIE",
    "ENOTSUPP",
    "ETOOSMALL",
    "ESERVERFAULT",
    "EBADTYPE",
    "EJUKEBOX",
    "EIOCBQUEUED",
    "ERECALLCONFLICT",
    "ENOGRACE",
];
const FIRST_INTERNAL: usize = 512;

/// Name of an error code, also as a negative return value.
pub(super) fn name(number: i128) -> Option<&'static str> {
    let number = usize::try_from(number.unsigned_abs()).ok()?;
    let internal = || INTERNAL.get(number.checked_sub(FIRST_INTERNAL)?);
    NAMES
        .get(number)
        .or_else(internal)
        .copied()
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn errors() {
        for (error, expected) in [
            (Errno::PERM, "EPERM"),
            (Errno::NOENT, "ENOENT"),
            (Errno::AGAIN, "EAGAIN"),
            (Errno::INVAL, "EINVAL"),
            (Errno::DEADLK, "EDEADLK"),
            (Errno::NOSYS, "ENOSYS"),
            (Errno::OVERFLOW, "EOVERFLOW"),
            (Errno::OPNOTSUPP, "EOPNOTSUPP"),
            (Errno::TIMEDOUT, "ETIMEDOUT"),
            (Errno::CANCELED, "ECANCELED"),
            (Errno::HWPOISON, "EHWPOISON"),
        ] {
            assert_eq!(name(error.raw_os_error().into()), Some(expected));
            assert_eq!(name(-i128::from(error.raw_os_error())), Some(expected));
        }
    }

    #[test]
    fn errors_of_the_kernel_alone() {
        assert_eq!(name(-512), Some("ERESTARTSYS"));
        assert_eq!(name(-517), Some("EPROBE_DEFER"));
        assert_eq!(name(-531), Some("ENOGRACE"));
    }

    #[test]
    fn no_errors() {
        for number in [0, 41, 58, 200, 520, 532, -4096] {
            assert_eq!(name(number), None);
        }
    }
}

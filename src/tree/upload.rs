// SPDX-License-Identifier: GPL-2.0

//! State of an open `rules` file: the rules that are being written to it.

use crate::{
    rust::{
        cpu,
        tracefs::UserBuffer, //
    },
    user_stack::{
        Fault,
        Machine,
        Rules,
        Upload, //
    },
};
use kernel::{
    prelude::*,
    sync::Mutex, //
};

/// The architecture of programs.
const MACHINE: Machine = match cfg!(target_arch = "aarch64") {
    true => Machine::Arm64,
    false => Machine::X86,
};

/// The rules that are written to an open file. `None` after the last word, or a mistake.
pub(crate) struct OpenUpload(Pin<KBox<Mutex<Option<Upload>>>>);

/// Why rules were refused.
pub(super) enum Refused {
    Fault(Fault),
    Other(Error),
}

impl From<Error> for Refused {
    fn from(errno: Error) -> Self {
        Self::Other(errno)
    }
}

impl OpenUpload {
    /// Fails with `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let upload = Upload::new(MACHINE);
        let upload = KBox::pin_init(kernel::new_mutex!(Some(upload)), GFP_KERNEL)?;
        Ok(Self(upload))
    }

    /// Appends the bytes of one write. Returns the rules, checked, if they are complete.
    pub(super) fn write(&self, data: &UserBuffer) -> Result<Option<Rules>, Refused> {
        let mut fault = None;
        let appended = data.read_pieces(|piece| {
            cpu::yield_unless_killed()?;
            let mut upload = self.0.lock();
            let upload = (*upload).as_mut().ok_or(EINVAL)?;
            upload.write(piece).map_err(|found| {
                fault = Some(found);
                EINVAL
            })
        });
        let is_over = |upload: &mut Upload| appended.is_err() || upload.is_complete();
        // Checked, or dropped, without the lock.
        let upload = self.0.lock().take_if(is_over);
        match (fault, upload) {
            (Some(fault), _) => Err(Refused::Fault(fault)),
            (None, upload) => {
                appended?;
                // The check ends soon even if the task has been killed.
                let between = || {
                    let _ = cpu::yield_unless_killed();
                };
                upload
                    .map(|upload| upload.finish(between))
                    .transpose()
                    .map_err(Refused::Fault)
            }
        }
    }
}

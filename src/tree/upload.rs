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
    sync::{
        Mutex,
        SetOnce, //
    },
};

/// The architecture of programs.
const MACHINE: Machine = match cfg!(target_arch = "aarch64") {
    true => Machine::Arm64,
    false => Machine::X86,
};

/// The rules that are written to an open file, since the first write. `None` after the last word,
/// or a mistake.
pub(crate) struct OpenUpload(SetOnce<Pin<KBox<Mutex<Option<Upload>>>>>);

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
    pub(super) fn new() -> Self {
        Self(SetOnce::new())
    }

    /// The upload, which the first write creates. Fails with `ENOMEM`, and with `EAGAIN` while
    /// another task does so: `write(2)` does not do that to one open file, but `pwrite(2)` may.
    fn upload(&self) -> Result<&Mutex<Option<Upload>>> {
        if self.0.as_ref().is_none() {
            let upload = Upload::new(MACHINE);
            let upload = KBox::pin_init(kernel::new_mutex!(Some(upload)), GFP_KERNEL_ACCOUNT)?;
            self.0.populate(upload);
        }
        let upload = self.0.as_ref().ok_or(EAGAIN)?;
        Ok(upload)
    }

    /// Appends the bytes of one write. Returns the rules, checked, if they are complete.
    pub(super) fn write(&self, data: &UserBuffer) -> Result<Option<Rules>, Refused> {
        let here = self.upload()?;
        let mut fault = None;
        let appended = data.read_pieces(|piece| {
            cpu::yield_unless_killed()?;
            let mut upload = here.lock();
            let upload = (*upload).as_mut().ok_or(EINVAL)?;
            upload.write(piece).map_err(|found| {
                fault = Some(found);
                EINVAL
            })
        });
        let is_over = |upload: &mut Upload| appended.is_err() || upload.is_complete();
        // Checked, or dropped, without the lock.
        let upload = here.lock().take_if(is_over);
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

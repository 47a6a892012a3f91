// SPDX-License-Identifier: GPL-2.0

//! Limits for the memory of user events: per user, and for all users together.
//!
//! Memory that the module allocates for a program is charged to the program's memory control group.
//! Memory that the kernel allocates for each event is not, and not every program is in a group with
//! a limit. So all objects that a program can create in any number are charged here, too: events,
//! enable bits, and tables of write indices. The charge is in bytes, with the kernel's part, so
//! that two limits serve for all kinds of objects.

use crate::{
    errno::edquot,
    rust::{
        sysctl::Sysctl,
        user::{
            self,
            UserId, //
        },
    },
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
};

/// Default of `kernel.user_events_max_kb`: for the default maximum number of events, with some
/// fields each.
const MAX_KB: u32 = 256 << 10;

/// Default of `kernel.user_events_max_user_kb`.
const MAX_USER_KB: u32 = 16 << 10;

/// Charge of an event without its fields: for its structures, texts and directories, with the
/// longest possible name.
const EVENT: usize = 4 << 10;

/// Charge of each field of an event, with its part of the texts.
const FIELD: usize = 192;

/// Charge of an enable bit.
const BIT: usize = 256;

/// Bytes charged so far.
struct Usage {
    /// For all users.
    total: usize,
    /// For each user with a charge.
    users: RBTree<UserId, usize>,
}

/// The limits, and the bytes that are charged.
#[pin_data]
pub(super) struct Quota {
    /// The sysctl `kernel.user_events_max_kb`.
    max: Sysctl,
    /// The sysctl `kernel.user_events_max_user_kb`.
    max_user: Sysctl,
    /// Nests inside any other lock. Held only briefly.
    #[pin]
    usage: SpinLock<Usage>,
}

impl Quota {
    /// Registers the sysctls. Fails with `ENOMEM`.
    pub(super) fn new() -> Result<Arc<Self>> {
        let usage = Usage {
            total: 0,
            users: RBTree::new(),
        };
        Arc::pin_init(
            try_pin_init!(Self {
                max: Sysctl::new(c"user_events_max_kb", MAX_KB)?,
                max_user: Sysctl::new(c"user_events_max_user_kb", MAX_USER_KB)?,
                usage <- kernel::new_spinlock!(usage),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Charges a user. Fails with `EDQUOT` if the user would exceed `max_user` bytes, and with
    /// `EMFILE` if all users together would exceed their limit.
    fn add(&self, user: UserId, bytes: usize, max_user: usize) -> Result {
        // Allocated before the lock is taken, and freed after it is released unless this is the
        // user's first charge.
        let entry = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut usage = self.usage.lock();
        let of_user = usage.users.get(&user).map_or(bytes, |used| used + bytes);
        let total = usage.total + bytes;
        if of_user > max_user {
            return Err(edquot());
        }
        if total > in_bytes(&self.max) {
            return Err(EMFILE);
        }
        usage.total = total;
        match usage.users.get_mut(&user) {
            Some(used) => *used = of_user,
            None => {
                usage.users.insert(entry.into_node(user, of_user));
            }
        }
        Ok(())
    }

    fn remove(&self, user: UserId, bytes: usize) {
        let mut usage = self.usage.lock();
        usage.total -= bytes;
        if let Some(used) = usage.users.get_mut(&user) {
            *used -= bytes;
            if *used == 0 {
                usage.users.remove(&user);
            }
        }
    }
}

fn in_bytes(kb: &Sysctl) -> usize {
    (kb.value() as usize).saturating_mul(1 << 10)
}

/// The charge of a user for an object; dropping it returns the bytes. Can be dropped in any task
/// context.
pub(super) struct Charge {
    quota: Arc<Quota>,
    user: UserId,
    bytes: usize,
}

impl Charge {
    /// Charges the user of the running task. Task context; may sleep.
    ///
    /// # Errors
    ///
    /// `EDQUOT` if the user would exceed `kernel.user_events_max_user_kb`, unless the task has
    /// `CAP_SYS_RESOURCE`; `EMFILE` if all users together would exceed `kernel.user_events_max_kb`;
    /// `ENOMEM`.
    pub(super) fn new(quota: &Arc<Quota>, bytes: usize) -> Result<Self> {
        let user = UserId::charged();
        let mut added = quota.add(user, bytes, in_bytes(&quota.max_user));
        // Checked only now, since a denial may be logged.
        if added == Err(edquot()) && user::may_exceed_limits() {
            added = quota.add(user, bytes, usize::MAX);
        }
        added?;
        Ok(Self {
            quota: quota.clone(),
            user,
            bytes,
        })
    }

    /// [`Charge::new`] for an event with this number of fields.
    pub(super) fn event(quota: &Arc<Quota>, fields: usize) -> Result<Self> {
        Self::new(quota, EVENT + fields * FIELD)
    }

    /// [`Charge::new`] for an enable bit.
    pub(super) fn bit(quota: &Arc<Quota>) -> Result<Self> {
        Self::new(quota, BIT)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.quota.remove(self.user, self.bytes);
    }
}

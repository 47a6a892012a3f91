// SPDX-License-Identifier: GPL-2.0

//! Synchronisation.

pub mod arc;
pub mod atomic;
pub mod barrier;
pub mod condvar;
pub mod lock;
pub mod rcu;

pub use arc::Arc;
pub use arc::ArcBorrow;
pub use condvar::CondVar;
pub use lock::mutex::Mutex;

// SPDX-License-Identifier: GPL-2.0

//! The source for `rhist:sample`: a timer or a counter on each CPU (`rust/sample.c`).
//!
//! Samples are few, so they always take the slow path. The stack of a sample begins in the function
//! that was interrupted; it is empty if that was a program.

use super::{
    probe::{
        hit_all_in,
        Callback, //
    },
    Receiver,
    Source, //
};
use crate::{
    rust::{
        bindings,
        event::Event,
        sample::SampleSource,
        stack::Frame,
        task::TaskArg, //
    }, //
};
use kernel::{
    error::to_result,
    ffi,
    prelude::*,
    sync::Arc, //
};

/// The timers or counters, which run until it is [disconnected](Source::disconnect).
pub(crate) struct Sampler<R> {
    callback: Pin<KBox<Callback<R>>>,
}

// SAFETY: The functions that start and stop them lock. Hits only use the receiver, which is
// `Sync`, and the flag that `want_context()` writes.
unsafe impl<R: Receiver> Send for Sampler<R> {}
// SAFETY: As for `Send`.
unsafe impl<R: Receiver> Sync for Sampler<R> {}

impl<R: Receiver> Sampler<R> {
    /// Starts the timers or counters. With `context`, they fill in the context of hits. Fails with
    /// `ENOMEM`, or an errno of perf.
    ///
    /// # Safety
    ///
    /// `event` is `rhist:sample`, and no other sampler exists for it. The caller disconnects the
    /// result before it drops it. `R` is the type in `probe_entry_points!`.
    pub(crate) unsafe fn attach(
        event: &Event,
        receiver: Arc<R>,
        context: bool,
    ) -> Result<KBox<dyn Source>> {
        let callback = Callback::new(event, receiver, context, false)?;
        // Allocated before it is connected, so that nothing can fail afterwards.
        let source = KBox::new(Self { callback }, GFP_KERNEL)?;
        // SAFETY: The private data is complete, and the caller guarantees that it stays pinned
        // until it is disconnected. No other sampler is connected.
        to_result(unsafe { bindings::rhist_sample_connect(source.callback.probed()) })?;
        Ok(source)
    }
}

impl<R: Receiver> Source for Sampler<R> {
    /// Waits for hits.
    fn disconnect(&mut self) {
        // SAFETY: It is connected.
        unsafe { bindings::rhist_sample_disconnect() };
    }

    fn want_context(&self) {
        self.callback.want_context();
    }

    fn name(&self) -> &'static str {
        SampleSource::connected().name()
    }
}

/// Counts a hit. `rhist_probe_hit_at()` calls this: see [`hit_all`](super::probe::hit_all).
///
/// # Safety
///
/// As for `hit_all`, but `frame` is the frame of the function that was interrupted, or null.
#[inline(always)]
pub(crate) unsafe fn hit_all<R: Receiver>(
    probed: *const bindings::rhist_probed,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
    frame: *const bindings::rhist_frame,
) {
    // SAFETY: A frame belongs to a function that goes on after this one. The caller guarantees the
    // rest.
    unsafe {
        let frame = match frame.is_null() {
            true => Frame::NONE,
            false => Frame::from_raw(frame, 0),
        };
        hit_all_in::<R>(probed, record, size, cpu, TaskArg::NONE, frame);
    }
}

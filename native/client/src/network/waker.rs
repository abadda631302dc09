//! Waking the I/O thread by an eventfd that is written only while that thread sleeps; and notifying an event loop of
//! results.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes one sleeping thread; costs one atomic load while it is awake.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
    /// True from just before the I/O thread sleeps until it has woken. A caller that adds work and then reads false knows
    /// that the thread checks for work once more before it sleeps.
    asleep: AtomicBool,
}

impl Waker {
    /// A new eventfd, not signalled.
    pub fn new() -> std::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, asleep: AtomicBool::new(false) })
    }

    /// Wake the thread, after adding work.
    pub fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: it is written once for each sleep. No other error can be handled here.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Announce sleep; the caller must check for work once more afterwards.
    pub fn will_sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Record that the thread is awake, and clear the signal if its poll saw one. A signal sent between the poll and this
    /// call stays, and ends the next sleep at once.
    pub fn woke(&self, signalled: bool) {
        self.asleep.store(false, Ordering::SeqCst);
        if signalled {
            let mut count = [0u8; 8];
            let _ = rustix::io::read(&self.fd, &mut count);
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A notification for an event loop: a descriptor that is readable from `raise` to `clear`. Costs nothing until the
/// descriptor is requested.
#[derive(Debug, Default)]
pub struct Signal {
    fd: OnceLock<OwnedFd>,
    /// The descriptor is readable, or will be at once: a further notification costs no system call.
    raised: AtomicBool,
}

impl Signal {
    /// The descriptor to poll; it is valid as long as the signal exists.
    pub fn descriptor(&self) -> std::io::Result<RawFd> {
        if self.fd.get().is_none() {
            // Two concurrent callers: one descriptor is kept, the other closed.
            let _ = self.fd.set(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        }
        Ok(self.fd.get().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Whether the descriptor was requested.
    pub fn is_watched(&self) -> bool {
        self.fd.get().is_some()
    }

    /// Notify the event loop.
    pub fn raise(&self) {
        if let Some(fd) = self.fd.get()
            && !self.raised.swap(true, Ordering::SeqCst)
        {
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        }
    }

    /// Clear the notification, before the caller checks for results. A notification after the descriptor was read and before
    /// the flag is cleared is found by that check, which follows both.
    pub fn clear(&self) {
        if let Some(fd) = self.fd.get() {
            let mut count = [0u8; 8];
            let _ = rustix::io::read(fd, &mut count);
            self.raised.store(false, Ordering::SeqCst);
        }
    }
}

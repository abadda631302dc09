//! How callers wake the I/O thread, an eventfd that is written only while that thread sleeps; and how the I/O thread
//! notifies an event loop that there is news.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes one sleeping thread; costs one atomic load while it is awake.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
    /// True from just before the I/O thread sleeps until it has woken. A caller that adds work and then reads false
    /// knows that the thread looks for work once more before it sleeps.
    asleep: AtomicBool,
}

impl Waker {
    /// A new eventfd, not signalled.
    pub fn new() -> std::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, asleep: AtomicBool::new(false) })
    }

    /// Called after work was added.
    pub fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: it is written once per sleep. Another failure cannot be acted upon.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Announce sleep; the caller must look for work once more afterwards.
    pub fn will_sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// The thread is awake; takes the signal back when its poll saw one. A signal that is sent between the poll and
    /// here stays, and costs one sleep.
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

/// News for an event loop: a descriptor that is readable from `raise` to `clear`. Costs nothing until it is asked for.
#[derive(Debug, Default)]
pub struct Signal {
    fd: OnceLock<OwnedFd>,
    /// The descriptor is readable, or will be at once: news after that costs no system call.
    raised: AtomicBool,
}

impl Signal {
    /// The descriptor to watch; it lives as long as the signal.
    pub fn descriptor(&self) -> std::io::Result<RawFd> {
        if self.fd.get().is_none() {
            // Two callers at once: one descriptor is kept, the other closed.
            let _ = self.fd.set(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        }
        Ok(self.fd.get().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Whether anyone watches.
    pub fn is_watched(&self) -> bool {
        self.fd.get().is_some()
    }

    /// There is news.
    pub fn raise(&self) {
        if let Some(fd) = self.fd.get()
            && !self.raised.swap(true, Ordering::SeqCst)
        {
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        }
    }

    /// The news is about to be looked at. News that comes after the descriptor was read and before the flag is down is
    /// seen by that look, which follows both.
    pub fn clear(&self) {
        if let Some(fd) = self.fd.get() {
            let mut count = [0u8; 8];
            let _ = rustix::io::read(fd, &mut count);
            self.raised.store(false, Ordering::SeqCst);
        }
    }
}

//! How callers wake the I/O thread, an eventfd that is written only while that thread sleeps; and how the I/O thread
//! tells an event loop that there is news.

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
pub struct Signal(OnceLock<OwnedFd>);

impl Signal {
    /// The descriptor to watch; it lives as long as the signal.
    pub fn descriptor(&self) -> std::io::Result<RawFd> {
        if self.0.get().is_none() {
            // Two callers at once: one descriptor is kept, the other closed.
            let _ = self.0.set(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        }
        Ok(self.0.get().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Whether anyone watches.
    pub fn is_watched(&self) -> bool {
        self.0.get().is_some()
    }

    /// There is news.
    pub fn raise(&self) {
        if let Some(fd) = self.0.get() {
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        }
    }

    /// The news is about to be looked at.
    pub fn clear(&self) {
        if let Some(fd) = self.0.get() {
            let mut count = [0u8; 8];
            let _ = rustix::io::read(fd, &mut count);
        }
    }
}

//! A wake-up: an eventfd that makes a thread leave `epoll_wait`, written once until that thread has looked.
//!
//! Owns the descriptor. Must not know what the thread is woken for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::EventfdFlags;

/// See the module.
#[derive(Debug)]
pub struct WakeUp {
    /// Whether the eventfd has been written since the thread last looked; saves a system call for each of a burst.
    armed: AtomicBool,
    eventfd: OwnedFd,
}

impl WakeUp {
    /// A wake-up that has not been called. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let eventfd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { armed: AtomicBool::new(false), eventfd })
    }

    /// The descriptor that is readable after [`WakeUp::wake`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if !self.armed.swap(true, Ordering::AcqRel) {
            // The counter cannot overflow: it is written once before it is read.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    /// The thread is awake: from here on [`WakeUp::wake`] wakes it again. Who calls this looks afterwards for what it may
    /// have been woken for: a swap, not a store, so that it sees what was there before a wake that it has cut off.
    pub fn woken(&self) {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.eventfd, &mut counter);
        self.armed.swap(false, Ordering::AcqRel);
    }
}

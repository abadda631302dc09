//! Room for connections: how many are open, and the wake-up of the acceptor that waits for one to close.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::wake_up::WakeUp;

/// See the module.
#[derive(Debug)]
pub struct Room {
    taken: AtomicUsize,
    /// The acceptor waits for a connection to close.
    wanted: AtomicBool,
    wake_up: WakeUp,
}

impl Room {
    /// Nothing taken. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { taken: AtomicUsize::new(0), wanted: AtomicBool::new(false), wake_up: WakeUp::new()? })
    }

    /// Connections open.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    /// Counts one more connection when fewer than `most` are open.
    pub fn take(&self, most: usize) -> bool {
        let next = |taken: usize| (taken < most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok()
    }

    /// A connection has closed: wakes the acceptor where it waits for that.
    pub fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
        if self.wanted.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Asks for a wake-up when the next connection closes. Who asks looks at [`Room::taken`] again afterwards.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Wakes the acceptor.
    pub fn wake(&self) {
        self.wake_up.wake();
    }

    /// The acceptor is awake.
    pub fn woken(&self) {
        self.wake_up.woken();
    }

    /// The descriptor that is readable after [`Room::wake`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake_up.fd()
    }
}

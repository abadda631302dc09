//! A wake-up: an eventfd that ends a thread's `epoll_wait`. It is written once until the thread has read it.
//!
//! Owns the descriptor. Must not know the reason for the wake-up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::EventfdFlags;

/// An eventfd, written once until its thread has read it.
#[derive(Debug)]
pub struct WakeUp {
    /// Whether the eventfd is written and not yet read. Saves the system call of each wake but the first of a burst.
    is_woken: AtomicBool,
    eventfd: OwnedFd,
}

impl WakeUp {
    /// A wake-up that has not been triggered. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let eventfd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { is_woken: AtomicBool::new(false), eventfd })
    }

    /// The descriptor that is readable after [`WakeUp::wake`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            // The counter cannot overflow: it is written once before it is read.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    /// Records that the thread is awake: the next [`WakeUp::wake`] wakes it again. The caller checks its queues afterwards.
    /// A swap, not a store, so that the caller sees everything queued before a wake that found the flag set.
    pub fn woken(&self) {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.eventfd, &mut counter);
        self.is_woken.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(wake_up: &WakeUp) -> bool {
        let mut counter = [0; 8];
        rustix::io::read(&wake_up.eventfd, &mut counter).is_ok()
    }

    #[test]
    fn a_burst_is_written_once() {
        let wake_up = WakeUp::new().unwrap();
        (0..3).for_each(|_| wake_up.wake());
        wake_up.woken();
        assert!(!is_readable(&wake_up));
        wake_up.wake();
        assert!(is_readable(&wake_up));
    }

    #[test]
    fn waits_and_wakes_at_the_same_time_lose_none() {
        let (wake_up, rounds) = (Arc::new(WakeUp::new().unwrap()), 2000);
        let (requested, responded) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let other = (Arc::clone(&wake_up), Arc::clone(&requested), Arc::clone(&responded));
        let waker = std::thread::spawn(move || {
            let (wake_up, requested, responded) = other;
            for round in 1..=rounds {
                requested.store(round, Ordering::Release);
                wake_up.wake();
                while responded.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
            }
        });
        let mut seen = 0;
        while seen < rounds {
            let mut watched = [PollFd::new(&wake_up.eventfd, PollFlags::IN)];
            let most = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(poll(&mut watched, Some(&most)).unwrap(), 1, "round {seen} was not woken");
            wake_up.woken();
            seen = requested.load(Ordering::Acquire);
            responded.store(seen, Ordering::Release);
        }
        waker.join().unwrap();
    }
}

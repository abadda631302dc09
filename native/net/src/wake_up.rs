//! A wake-up: an eventfd that makes a thread leave `epoll_wait`, written once until that thread has looked.
//!
//! Owns the descriptor. Must not know what the thread is woken for.

use std::hint;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;

/// The thread may be in `epoll_wait`, or on the way there: a wake has to write.
const ASLEEP: u8 = 0;
/// The thread has been woken and has not looked yet.
const WOKEN: u8 = 1;
/// The thread looks again and again: a wake need not write.
const LOOKING: u8 = 2;

/// How often a thread that looks does so before it looks at the clock.
const LOOKS: u32 = 64;

/// What a round of looks takes longer than where others want the core: then it does not sleep when this thread does.
const OTHERS_RAN: Duration = Duration::from_micros(20);

/// See the module.
#[derive(Debug)]
pub struct WakeUp {
    /// Saves a system call for each wake but the first of a burst, and for each while the thread looks.
    state: AtomicU8,
    eventfd: OwnedFd,
}

impl WakeUp {
    /// A wake-up that has not been called. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let eventfd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { state: AtomicU8::new(ASLEEP), eventfd })
    }

    /// The descriptor that is readable after [`WakeUp::wake`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == ASLEEP {
            // The counter cannot overflow: it is written once before it is read.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    /// Looks for a wake for so long, without sleep: the system takes tens of microseconds to wake a core. Whether there was one;
    /// then [`WakeUp::woken`] has to follow, as the descriptor need not be readable.
    pub fn look(&self, time: Duration) -> bool {
        if self.state.compare_exchange(ASLEEP, LOOKING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return true;
        }
        let begun = Instant::now();
        let mut last = begun;
        loop {
            for _ in 0..LOOKS {
                if self.state.load(Ordering::Acquire) == WOKEN {
                    return true;
                }
                hint::spin_loop();
            }
            let now = Instant::now();
            if now - begun >= time || now - last > OTHERS_RAN {
                break;
            }
            last = now;
        }
        self.state.compare_exchange(LOOKING, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_err()
    }

    /// The thread is awake: from here on [`WakeUp::wake`] wakes it again. Who calls this looks afterwards for what it may
    /// have been woken for: a swap, not a store, so that it sees what was there before a wake that it has cut off.
    pub fn woken(&self) {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.eventfd, &mut counter);
        self.state.swap(ASLEEP, Ordering::AcqRel);
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
    fn a_wake_while_the_thread_looks_is_not_written() {
        let wake_up = WakeUp::new().unwrap();
        wake_up.state.store(LOOKING, Ordering::Release);
        wake_up.wake();
        assert!(!is_readable(&wake_up));
        assert_eq!(wake_up.state.load(Ordering::Acquire), WOKEN, "what ends the look");
        wake_up.woken();
        wake_up.wake();
        assert!(is_readable(&wake_up));
    }

    #[test]
    fn looks_and_wakes_at_the_same_time_lose_none() {
        let (wake_up, rounds) = (Arc::new(WakeUp::new().unwrap()), 2000);
        let (asked, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let other = (Arc::clone(&wake_up), Arc::clone(&asked), Arc::clone(&answered));
        let waker = std::thread::spawn(move || {
            let (wake_up, asked, answered) = other;
            for round in 1..=rounds {
                asked.store(round, Ordering::Release);
                wake_up.wake();
                while answered.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
            }
        });
        let mut seen = 0;
        while seen < rounds {
            if !wake_up.look(Duration::from_micros(seen % 3)) {
                let mut watched = [PollFd::new(&wake_up.eventfd, PollFlags::IN)];
                let most = Timespec { tv_sec: 60, tv_nsec: 0 };
                assert_eq!(poll(&mut watched, Some(&most)).unwrap(), 1, "round {seen} was not woken");
            }
            wake_up.woken();
            seen = asked.load(Ordering::Acquire);
            answered.store(seen, Ordering::Release);
        }
        waker.join().unwrap();
    }

    #[test]
    fn a_wake_after_the_look_is_written() {
        let wake_up = WakeUp::new().unwrap();
        assert!(!wake_up.look(Duration::ZERO));
        wake_up.wake();
        assert!(wake_up.look(Duration::ZERO), "it was woken before");
        assert!(is_readable(&wake_up));
    }
}

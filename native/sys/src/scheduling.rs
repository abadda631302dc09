//! The scheduler slice of a thread: how long it runs before waiting threads are scheduled. Linux's scheduler (EEVDF,
//! since 6.12) reads it per thread. A thread with a short slice preempts a thread with a long slice at once. The
//! shares of both do not change.
//!
//! Owns the system call. Must not know the purpose of threads.

#![allow(unsafe_code, reason = "no library has this system call: argued at each block")]

use std::io;
use std::time::Duration;

/// Sets the slice of the calling thread and of the threads that it starts later. `ZERO` keeps the current slice.
/// Linux before 6.12 ignores the value, and so do threads with another scheduling policy than the default.
///
/// Linux limits it to the range from 0.1 to 100 ms.
///
/// # Errors
/// The error of the system, which may forbid the call.
#[cfg(target_os = "linux")]
pub fn set_slice(slice: Duration) -> io::Result<()> {
    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
    if slice.is_zero() {
        return Ok(());
    }
    let mut attributes = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `SIZE` bytes to the structure, which is ours and of that size; all bits are valid.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.size = SIZE;
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the kernel reads `size` bytes of the structure, which is ours and of that size.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does nothing, since other systems have no such call.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn set_slice(_slice: Duration) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use super::set_slice;

    /// Returns the slice of the calling thread in nanoseconds, if the kernel reports it.
    fn slice_ns() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    /// Returns whether the kernel supports slices: Linux 6.12 and later.
    fn takes_slices() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(6), Some(12))
    }

    #[test]
    fn a_thread_has_the_slice_that_it_is_given_and_so_have_those_it_begins() {
        let ran = std::thread::spawn(|| {
            let before = slice_ns();
            set_slice(Duration::ZERO).unwrap();
            assert_eq!(slice_ns(), before);
            set_slice(Duration::from_micros(300)).unwrap();
            (slice_ns(), std::thread::spawn(slice_ns).join().unwrap())
        });
        let (own, begun) = ran.join().unwrap();
        assert_eq!(own, begun);
        if takes_slices() {
            assert!(own.is_none_or(|slice| slice == 300_000), "{own:?}");
        }
    }
}

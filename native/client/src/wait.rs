//! Interruptible waits of callers: in slices, so that the embedding program can end a wait, as Ctrl-C does.
//!
//! Knows no signals: the embedding program passes a function that returns whether to end this thread's wait.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, MutexGuard};

use crate::error::ClientError;

/// Time between two checks for an interruption.
const SLICE: Duration = Duration::from_millis(50);

static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Set the function that every wait of a caller's thread checks; true ends the wait with [`ClientError::Interrupted`]. Only
/// the first call has an effect.
pub fn interrupt_waits_when(interrupted: fn() -> bool) {
    let _ = INTERRUPTED.set(interrupted);
}

/// Return an error if the embedding program interrupts this thread's wait.
fn check_interrupt() -> Result<(), ClientError> {
    match INTERRUPTED.get() {
        Some(interrupted) if interrupted() => Err(ClientError::Interrupted),
        _ => Ok(()),
    }
}

/// The end of the slice that begins at this time.
fn slice_end(deadline: Instant) -> Instant {
    if INTERRUPTED.get().is_some() { deadline.min(Instant::now() + SLICE) } else { deadline }
}

/// Wait for a notification, at most until `deadline`; returns whether the deadline has passed. May return earlier without a
/// notification. The lock is released while the interruption is checked.
pub fn wait_until<T>(condvar: &Condvar, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> Result<bool, ClientError> {
    let end = slice_end(deadline);
    if !condvar.wait_until(guard, end).timed_out() {
        return Ok(false);
    }
    MutexGuard::unlocked(guard, check_interrupt)?;
    Ok(end >= deadline)
}

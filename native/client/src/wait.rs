//! How callers wait: in slices, so that the program that embeds the client can end a wait, as Ctrl-C does.
//!
//! Knows no signal: the embedder gives a function that says whether this thread's wait is to end.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, MutexGuard};

use crate::error::ClientError;

/// Between two questions whether a wait is to end.
const SLICE: Duration = Duration::from_millis(50);

static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();

/// From now on ask `interrupted` in every wait of a caller's thread; true ends the wait with
/// [`ClientError::Interrupted`]. Only the first call counts.
pub fn interrupt_waits_when(interrupted: fn() -> bool) {
    let _ = INTERRUPTED.set(interrupted);
}

/// End with an error when the embedder wants this thread's wait to end.
fn check_interrupt() -> Result<(), ClientError> {
    match INTERRUPTED.get() {
        Some(interrupted) if interrupted() => Err(ClientError::Interrupted),
        _ => Ok(()),
    }
}

/// The end of the slice that begins now.
fn slice_end(deadline: Instant) -> Instant {
    if INTERRUPTED.get().is_some() { deadline.min(Instant::now() + SLICE) } else { deadline }
}

/// Wait for a notification, at most until `deadline`: whether that has passed. May return earlier without a
/// notification. The lock is not held while the embedder is asked.
pub fn wait_until<T>(condvar: &Condvar, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> Result<bool, ClientError> {
    let end = slice_end(deadline);
    if !condvar.wait_until(guard, end).timed_out() {
        return Ok(false);
    }
    MutexGuard::unlocked(guard, check_interrupt)?;
    Ok(end >= deadline)
}

//! The interface of one call to the native codec, and the sharing of the interpreter lock.

use std::cell::Cell;

use pyo3::prelude::*;

use super::declaration::Schema;

/// Python, a schema and its `msgspec` functions: the interface of one call to the native codec.
pub struct Host<'a, 'py> {
    pub py: Python<'py>,
    pub schema: &'a Schema,
    pub astuple: &'a Bound<'py, PyAny>,
    /// Steps until the interpreter lock is released to a waiting thread.
    steps_left: Cell<usize>,
}

/// Bytes of text that count as one step of work. An element and a struct count as one step, too. A step takes a few
/// hundred nanoseconds.
pub const BYTES_PER_STEP: usize = 256;
/// Number of steps between two releases of the interpreter lock.
const STEPS_AT_ONCE: usize = 1_000;

impl<'a, 'py> Host<'a, 'py> {
    pub fn new(py: Python<'py>, schema: &'a Schema) -> Self {
        Host { py, schema, astuple: schema.astuple.bind(py), steps_left: Cell::new(STEPS_AT_ONCE) }
    }

    /// Counts steps, and releases the interpreter lock after `STEPS_AT_ONCE` of them. A message of a million elements
    /// takes a second, and no other thread should wait so long. The interpreter releases the lock in Python code only.
    pub fn work(&self, steps: usize) {
        match self.steps_left.get().checked_sub(steps) {
            Some(left) => self.steps_left.set(left),
            None => {
                self.steps_left.set(STEPS_AT_ONCE);
                self.py.detach(|| ());
            }
        }
    }
}

//! One call's face to the core's codec, and how much of the interpreter lock a call takes.

use std::cell::Cell;

use pyo3::prelude::*;

use super::declaration::Schema;

/// Python, a schema and what it needs of `msgspec`: one call's face to the core.
pub struct Host<'a, 'py> {
    pub py: Python<'py>,
    pub schema: &'a Schema,
    pub astuple: &'a Bound<'py, PyAny>,
    /// Steps until the interpreter lock is given to a thread that waits for it.
    steps_left: Cell<usize>,
}

/// A step is an element, a struct or so many bytes of text: some hundred nanoseconds.
pub const BYTES_PER_STEP: usize = 256;
const STEPS_AT_ONCE: usize = 1_000;

impl<'a, 'py> Host<'a, 'py> {
    pub fn new(py: Python<'py>, schema: &'a Schema) -> Self {
        Host { py, schema, astuple: schema.astuple.bind(py), steps_left: Cell::new(STEPS_AT_ONCE) }
    }

    /// Takes note of work. A message of a million elements takes a second, for which no other thread shall wait: a
    /// thread that codes it lets the others run in between, which the interpreter by itself does for Python code only.
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

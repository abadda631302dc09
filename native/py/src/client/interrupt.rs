//! Ctrl-C ends the waits of the native clients: the client calls this file between the slices of a wait.
//!
//! Owns the exception that a signal's handler raised, until the wait has ended with it.

use std::cell::RefCell;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

thread_local!(static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) });

/// Runs the handlers of pending signals; true if one raised. Handlers run in the main thread only.
pub fn interrupted() -> bool {
    let raised = Python::try_attach(|py| py.check_signals().err()).flatten();
    let ends = raised.is_some();
    if ends {
        RAISED.set(raised);
    }
    ends
}

/// The exception of the handler that ended this thread's wait.
pub fn take_raised() -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

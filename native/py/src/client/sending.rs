//! Adds a record to its batch: without waiting if possible, else without the interpreter lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pybroker_client::{Destination, Ticket};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::client::client_error::client_error;
use crate::client::draft::Draft;
use crate::client::native_producer::Producer;

impl Producer {
    /// Starts the code that waits for outcomes, before the first watched record.
    pub fn begin_watching(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_watched.load(Ordering::Acquire) {
            return Ok(());
        }
        self.inner.decided_descriptor()?;
        if let Some(begin) = &self.begin_watching {
            begin.call1(py, (self.settlements(),))?;
        }
        self.is_watched.store(true, Ordering::Release);
        Ok(())
    }

    /// Adds a record; `None` if it would have to wait. The chosen partition is kept then.
    pub fn try_send(&self, py: Python<'_>, draft: &Draft, partition: &mut i32) -> PyResult<Option<Ticket>> {
        let Some(destination) = self.destination(py, &draft.topic)? else { return Ok(None) };
        *partition = draft.partition(py, &self.functions, &destination, *partition)?;
        draft.with(py, |record| self.inner.try_send(&destination, *partition, record).map_err(client_error))
    }

    /// Adds a record; waits for its topic's metadata and for memory, without the interpreter lock.
    pub fn send_waiting(&self, py: Python<'_>, draft: &Draft, partition: i32) -> PyResult<Ticket> {
        let topic = draft.topic.to_str(py)?;
        let destination = py.detach(|| self.inner.destination(topic)).map_err(client_error)?;
        let partition = draft.partition(py, &self.functions, &destination, partition)?;
        draft.with(py, |record| py.detach(|| self.inner.send(&destination, partition, record)).map_err(client_error))
    }

    fn destination(&self, py: Python<'_>, topic: &Py<PyString>) -> PyResult<Option<Arc<Destination>>> {
        let mut last = self.last.lock();
        if let Some((name, destination)) = &*last
            && name.is(topic)
        {
            return Ok(Some(Arc::clone(destination)));
        }
        let found = self.inner.known_destination(topic.to_str(py)?).map_err(client_error)?;
        if let Some(destination) = &found {
            *last = Some((topic.clone_ref(py), Arc::clone(destination)));
        }
        Ok(found)
    }
}

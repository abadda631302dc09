//! The receivers of records' outcomes: callbacks and futures, kept by batch until the batch completes.
//!
//! Does not call them: it returns them with the outcomes, many at a time, and Python calls them.

use std::sync::Arc;

use parking_lot::Mutex;
use pybroker_client::{ClientError, Ticket, Written};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use rustc_hash::FxHashMap;

use crate::client::client_error::client_error;

/// Topic, partition, offset (-1 if unknown) and timestamp in ms.
pub type Row<'py> = (Bound<'py, PyString>, i32, i64, i64);

/// The outcome of a batch: the receivers of its records, the row of each record, and the errors if the batch failed.
type Completed<'py> = (Bound<'py, PyList>, Bound<'py, PyList>, Option<Bound<'py, PyList>>);

struct Watcher {
    index: u32,
    timestamp_ms: i64,
    watcher: Py<PyAny>,
}

/// The watched records of one batch.
struct WatchedBatch {
    topic: Py<PyString>,
    partition: i32,
    delivery: Arc<pybroker_client::Delivery>,
    watchers: Vec<Watcher>,
}

/// A producer's watched records.
pub struct Watched {
    inner: Arc<pybroker_client::Producer>,
    batches: Mutex<FxHashMap<u64, WatchedBatch>>,
}

/// The row of a ticket's record, from the batch's outcome.
pub fn row<'py>(topic: Bound<'py, PyString>, partition: i32, place: (u32, i64), written: Written) -> Row<'py> {
    let (index, timestamp_ms) = place;
    let Written { base_offset, log_append_time_ms } = written;
    let offset = if base_offset < 0 { -1 } else { base_offset + i64::from(index) };
    (topic, partition, offset, if log_append_time_ms < 0 { timestamp_ms } else { log_append_time_ms })
}

impl Watched {
    pub fn new(inner: Arc<pybroker_client::Producer>) -> Self {
        Self { inner, batches: Mutex::default() }
    }

    /// Registers `watcher` for the outcome of a record. The interpreter lock is held, so that no other thread takes the
    /// outcome between the append and this call. `late` means that the lock was released since the append.
    pub fn watch(&self, topic: &Bound<'_, PyString>, ticket: &Ticket, watcher: Py<PyAny>, late: bool) {
        ticket.delivery.observe(1);
        let entry = Watcher { index: ticket.index, timestamp_ms: ticket.timestamp_ms, watcher };
        let mut batches = self.batches.lock();
        let batch = batches.entry(ticket.batch).or_insert_with(|| WatchedBatch {
            topic: topic.clone().unbind(),
            partition: ticket.partition,
            delivery: Arc::clone(&ticket.delivery),
            watchers: Vec::new(),
        });
        batch.watchers.push(entry);
        drop(batches);
        if late && ticket.delivery.is_decided() {
            self.inner.report_again(ticket.batch);
        }
    }

    /// The watched batches that completed since the last call.
    fn take(&self) -> Vec<WatchedBatch> {
        let decided = self.inner.take_decided();
        let mut batches = self.batches.lock();
        decided.iter().filter_map(|id| batches.remove(id)).collect()
    }
}

impl WatchedBatch {
    fn complete<'py>(self, py: Python<'py>) -> PyResult<Completed<'py>> {
        let unknown = Written { base_offset: -1, log_append_time_ms: -1 };
        let outcome = self.delivery.outcome().unwrap_or(Err(ClientError::Closed { what: "producer" }));
        let written = outcome.as_ref().map_or(unknown, |written| *written);
        let topic = self.topic.bind(py);
        let rows = self.watchers.iter().map(|w| row(topic.clone(), self.partition, (w.index, w.timestamp_ms), written));
        let rows = PyList::new(py, rows)?;
        // Each record gets an exception of its own: the code that raises it adds a traceback.
        let errors = match outcome {
            Ok(_) => None,
            Err(error) => {
                let made = self.watchers.iter().map(|_| client_error(error.clone()).into_value(py));
                Some(PyList::new(py, made.collect::<Vec<_>>())?)
            }
        };
        Ok((PyList::new(py, self.watchers.into_iter().map(|w| w.watcher))?, rows, errors))
    }
}

/// The outcomes of watched records. Does not keep a reference to the producer.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Settlements {
    watched: Arc<Watched>,
}

impl Settlements {
    pub fn of(watched: &Arc<Watched>) -> Self {
        Self { watched: Arc::clone(watched) }
    }
}

#[pymethods]
impl Settlements {
    /// A descriptor that is readable when `take` may have outcomes.
    fn descriptor(&self) -> PyResult<i32> {
        Ok(self.watched.inner.decided_descriptor()?)
    }

    /// The outcomes since the last call, by batch: receivers, rows, and the errors if the batch failed. `None` after the
    /// last one.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Completed<'py>>>> {
        let finished = self.watched.inner.is_finished();
        let taken = self.watched.take();
        if taken.is_empty() && finished {
            return Ok(None);
        }
        taken.into_iter().map(|batch| batch.complete(py)).collect::<PyResult<Vec<_>>>().map(Some)
    }

    /// Makes the descriptor readable.
    fn rouse(&self) {
        self.watched.inner.rouse();
    }
}

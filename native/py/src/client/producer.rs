//! The native producer's interface to Python: settings and records in, deliveries out.
//!
//! Owns no behaviour. A record is added with the interpreter lock held, which costs less than releasing it; a call that has
//! to wait releases the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::{PyTraverseError, PyVisit};

use crate::client::client_error::client_error;
use crate::client::columns_import::{Capsules, send_batch, send_stream};
use crate::client::delivery::Delivery;
use crate::client::draft::{Draft, Functions, check_partition, topic_of};
use crate::client::measured_producer::MeasuredProducer;
use crate::client::native_producer::Producer;
use crate::client::producer_settings::{Continues, ProducerSettings, continuation};
use crate::client::rows_delivery::RowsDelivery;
use crate::client::settlements::{Settlements, Watched};

/// A record that waits for its topic's metadata or for memory.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Outgoing {
    draft: Draft,
    partition: AtomicI32,
}

#[pymethods]
impl Producer {
    #[new]
    #[pyo3(signature = (
        settings, *, acks, enable_idempotence, continues, key_serializer, value_serializer, partitioner, on_delivery,
        begin_watching
    ))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn new(
        settings: &Bound<'_, PyAny>,
        acks: i16,
        enable_idempotence: bool,
        continues: Option<Continues>,
        key_serializer: Option<Py<PyAny>>,
        value_serializer: Option<Py<PyAny>>,
        partitioner: Option<Py<PyAny>>,
        on_delivery: Option<Py<PyAny>>,
        begin_watching: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut config = settings.extract::<ProducerSettings>()?.config(settings, acks, enable_idempotence)?;
        config.continues = continues.map(continuation);
        let base = MeasuredProducer::open(config).map_err(client_error)?;
        let inner = Arc::clone(&base.inner);
        let own = Self {
            functions: Functions { key_serializer, value_serializer, partitioner },
            on_delivery,
            begin_watching,
            is_watched: AtomicBool::new(false),
            watched: Arc::new(Watched::new(Arc::clone(&inner))),
            last: Mutex::default(),
            inner,
        };
        Ok(PyClassInitializer::from(base).add_subclass(own))
    }

    #[doc = include_str!("send.txt")]
    #[pyo3(signature = (topic, value, key=None, *, partition=-1, timestamp_ms=None, headers=None, on_delivery=None))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn send(
        slf: &Bound<'_, Self>,
        topic: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        partition: i32,
        timestamp_ms: Option<i64>,
        headers: Option<&Bound<'_, PyAny>>,
        on_delivery: Option<Py<PyAny>>,
    ) -> PyResult<Delivery> {
        let (py, producer, topic) = (slf.py(), slf.get(), topic_of(topic)?);
        check_partition(partition)?;
        if producer.inner.has_failed() {
            slf.call_method0(intern!(py, "_log_failures"))?;
        }
        let draft = Draft::new(&producer.functions, topic, key, value, timestamp_ms, headers)?;
        let watcher = on_delivery.or_else(|| producer.on_delivery.as_ref().map(|call| call.clone_ref(py)));
        if watcher.is_some() {
            producer.begin_watching(py)?;
        }
        let mut partition = partition;
        let (ticket, waited) = match producer.try_send(py, &draft, &mut partition)? {
            Some(ticket) => (ticket, false),
            None => (producer.send_waiting(py, &draft, partition)?, true),
        };
        let is_watched = watcher.is_some();
        if let Some(watcher) = watcher {
            producer.watched.watch(topic, &ticket, watcher, waited);
        }
        Ok(Delivery::new(ticket, draft.topic, is_watched, slf.clone().unbind()))
    }

    /// Adds one record without waiting, and returns `None`. Returns a record for `_post_again` if it has to wait, or with
    /// `hold`.
    #[pyo3(name = "_post", signature = (topic, value, key, partition, timestamp_ms, headers, watcher, hold))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn post(
        &self,
        py: Python<'_>,
        topic: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        partition: i32,
        timestamp_ms: Option<i64>,
        headers: Option<&Bound<'_, PyAny>>,
        watcher: Py<PyAny>,
        hold: bool,
    ) -> PyResult<Option<Outgoing>> {
        let topic = topic_of(topic)?;
        check_partition(partition)?;
        let draft = Draft::new(&self.functions, topic, key, value, timestamp_ms, headers)?;
        let mut partition = partition;
        self.begin_watching(py)?;
        if !hold && let Some(ticket) = self.try_send(py, &draft, &mut partition)? {
            self.watched.watch(topic, &ticket, watcher, false);
            return Ok(None);
        }
        Ok(Some(Outgoing { draft, partition: AtomicI32::new(partition) }))
    }

    /// Adds a record that had to wait; false if it has to wait longer.
    #[pyo3(name = "_post_again", signature = (outgoing, watcher))]
    fn post_again(&self, py: Python<'_>, outgoing: &Outgoing, watcher: Py<PyAny>) -> PyResult<bool> {
        let mut partition = outgoing.partition.load(Ordering::Relaxed);
        let sent = self.try_send(py, &outgoing.draft, &mut partition)?;
        outgoing.partition.store(partition, Ordering::Relaxed);
        let Some(ticket) = sent else { return Ok(false) };
        self.watched.watch(outgoing.draft.topic.bind(py), &ticket, watcher, false);
        Ok(true)
    }

    /// Raises the error of a record that has waited for too long.
    #[pyo3(name = "_raise_late", signature = (outgoing))]
    fn raise_late(&self, py: Python<'_>, outgoing: &Outgoing) -> PyResult<()> {
        let topic = outgoing.draft.topic.to_str(py)?;
        outgoing.draft.with(py, |record| Err(client_error(self.inner.too_late(topic, record))))
    }

    /// Adds a record for every row of an Arrow record batch.
    #[pyo3(name = "_send_batch", signature = (capsules, topic))]
    fn send_batch(slf: &Bound<'_, Self>, capsules: Capsules<'_>, topic: Option<&str>) -> PyResult<RowsDelivery> {
        let sent = send_batch(slf.py(), &slf.get().inner, &capsules, topic)?;
        Ok(RowsDelivery::new(sent, slf.clone().unbind()))
    }

    /// Adds a record for every row of a stream of Arrow record batches.
    #[pyo3(name = "_send_stream", signature = (capsule, topic))]
    fn send_stream(
        slf: &Bound<'_, Self>,
        capsule: &Bound<'_, PyCapsule>,
        topic: Option<&str>,
    ) -> PyResult<RowsDelivery> {
        let sent = send_stream(slf.py(), &slf.get().inner, capsule, topic)?;
        Ok(RowsDelivery::new(sent, slf.clone().unbind()))
    }

    /// The outcomes of watched records.
    #[pyo3(name = "_settlements")]
    pub fn settlements(&self) -> Settlements {
        Settlements::of(&self.watched)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Functions { key_serializer, value_serializer, partitioner } = &self.functions;
        let own = [key_serializer, value_serializer, partitioner, &self.on_delivery, &self.begin_watching];
        own.into_iter().flatten().try_for_each(|function| visit.call(function))
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let _ = self.inner.close(Duration::ZERO);
    }
}

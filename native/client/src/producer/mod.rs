//! The producer's interface: records in, tickets out. Its I/O thread is the [`sender`].

pub mod accumulator;
pub mod batch;
pub mod delivery;
pub mod destination;
pub mod failures;
pub mod incomplete;
pub mod new_record;
pub mod observer;
pub mod partition_queue;
pub mod partitioner;
pub mod sender;
mod settling;
pub mod since;
pub mod state;
mod transacting;
pub mod transaction;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use self::accumulator::{Accumulator, Ticket};
use self::destination::{Destination, Partitions};
use self::failures::{Failures, Undelivered};
use self::new_record::{EqualValues, NewRecord};
use self::observer::DeliveryObserver;
use self::sender::Sender;
use self::since::Since;
use self::state::ProducerState;
use self::transaction::Transactions;
use crate::clock::now_ms;
use crate::config::ProducerConfig;
use crate::error::ClientError;
use crate::network::waker::Waker;
use crate::wait::wait_until;
use pybroker_wire::ErrorCode;
use pybroker_wire::init_producer_id::ProducerIdentity;

/// The counts of the records sent to one partition.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub topic: Arc<str>,
    pub partition: i32,
    /// Records acknowledged.
    pub acknowledged: u64,
    /// Records that failed.
    pub failed: u64,
}

/// A producer: thread-safe, one I/O thread, closed by `close` or when dropped.
#[derive(Debug)]
pub struct Producer {
    pub(crate) shared: Arc<ProducerState>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Producer {
    /// Start the I/O thread; it connects when the first record is sent. `observer` is called for every batch.
    pub fn new(config: ProducerConfig, observer: Option<Arc<dyn DeliveryObserver>>) -> Result<Self, ClientError> {
        config.check()?;
        let failed =
            |e: std::io::Error| ClientError::Disconnected { server: "local".to_owned(), detail: e.to_string() };
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let shared = Arc::new(ProducerState {
            accumulator: Accumulator::new(config.clone(), Arc::clone(&waker)),
            config,
            observer,
            directory: Mutex::default(),
            directory_changed: Condvar::new(),
            waker,
            first_failure: Mutex::new(None),
            failures: Failures::default(),
            network_failure: Mutex::new(None),
            refusal: Mutex::new(None),
            identity: Mutex::new(None),
            identity_changed: Condvar::new(),
            transactions: Transactions::default(),
        });
        shared.shut_before_the_first();
        let sender = Sender::new(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("pybroker-producer".to_owned()).spawn(move || sender.run());
        Ok(Self { shared, thread: Mutex::new(Some(thread.map_err(failed)?)) })
    }

    /// The topic; waits up to `max.block.ms` for its metadata.
    pub fn destination(&self, topic: &str) -> Result<Arc<Destination>, ClientError> {
        let mut directory = self.shared.directory.lock();
        if let Some(known) = directory.known.get(topic) {
            return Ok(Arc::clone(known));
        }
        directory.query(topic);
        self.shared.waker.wake();
        let began = Instant::now();
        let deadline = began + self.shared.config.max_block;
        loop {
            let late = wait_until(&self.shared.directory_changed, &mut directory, deadline)?;
            if let Some(known) = directory.known.get(topic) {
                return Ok(Arc::clone(known));
            }
            let code = directory.refused.get(topic).copied();
            if self.shared.accumulator.closed.load(Ordering::Acquire) {
                return Err(ClientError::Closed { what: "producer" });
            }
            if let Some(refusal) = self.shared.refusal.lock().clone() {
                return Err(refusal);
            }
            if late || code.is_some_and(|c| !c.is_retriable()) {
                return Err(self.unknown(topic, code, began.elapsed()));
            }
        }
    }

    /// The topic without waiting: `None` while its metadata is unknown. The signal is raised when this may have changed.
    pub fn known_destination(&self, topic: &str) -> Result<Option<Arc<Destination>>, ClientError> {
        let mut directory = self.shared.directory.lock();
        if let Some(known) = directory.known.get(topic) {
            return Ok(Some(Arc::clone(known)));
        }
        if self.shared.accumulator.closed.load(Ordering::Acquire) {
            return Err(ClientError::Closed { what: "producer" });
        }
        let code = directory.refused.get(topic).copied();
        if code.is_some_and(|c| !c.is_retriable()) {
            return Err(self.unknown(topic, code, Duration::ZERO));
        }
        if let Some(refusal) = self.shared.refusal.lock().clone() {
            return Err(refusal);
        }
        directory.query(topic);
        drop(directory);
        self.shared.waker.wake();
        Ok(None)
    }

    /// The error of a record after `max.block.ms` of waiting for its topic or for memory.
    pub fn too_late(&self, topic: &str, record: &NewRecord<'_>) -> ClientError {
        let directory = self.shared.directory.lock();
        if !directory.known.contains_key(topic) {
            return self.unknown(topic, directory.refused.get(topic).copied(), self.shared.config.max_block);
        }
        let config = &self.shared.config;
        self.shared.accumulator.full(config.batch_size.max(record.upper_bound()), config.max_block)
    }

    fn unknown(&self, topic: &str, code: Option<ErrorCode>, waited: Duration) -> ClientError {
        let servers = self.shared.config.connection.bootstrap_servers.join(",");
        let waited_ms = waited.as_millis() as u64;
        match (code, self.shared.network_failure.lock().as_ref()) {
            (Some(code), _) => ClientError::UnknownTopic { topic: topic.to_owned(), servers, waited_ms, code },
            (None, Some(failure)) => ClientError::Unreachable { servers, waited_ms, detail: failure.to_string() },
            (None, None) => ClientError::UnknownTopic {
                topic: topic.to_owned(),
                servers,
                waited_ms,
                code: ErrorCode::LEADER_NOT_AVAILABLE,
            },
        }
    }

    /// Add one record; the ticket returns its offset later. `partition` -1 chooses by key, or the sticky partition.
    pub fn send(
        &self,
        destination: &Destination,
        partition: i32,
        record: &NewRecord<'_>,
    ) -> Result<Ticket, ClientError> {
        let queue = destination.queue(partition, record.key)?;
        let ticket = self.shared.accumulator.append(&queue, record)?;
        if partition < 0 {
            destination.count(record, self.shared.config.batch_size);
        }
        Ok(ticket)
    }

    /// As [`Producer::send`] without waiting: `None` while memory is full. The signal is raised when memory is released.
    pub fn try_send(
        &self,
        destination: &Destination,
        partition: i32,
        record: &NewRecord<'_>,
    ) -> Result<Option<Ticket>, ClientError> {
        let queue = destination.queue(partition, record.key)?;
        let ticket = self.shared.accumulator.try_append(&queue, record)?;
        if partition < 0 && ticket.is_some() {
            destination.count(record, self.shared.config.batch_size);
        }
        Ok(ticket)
    }

    /// Add values of `size` bytes each, which are adjacent in `values`; returns how many were added. Their latency counts
    /// from `since`.
    pub fn send_many(
        &self,
        destination: &Destination,
        partition: i32,
        values: &[u8],
        size: usize,
        since: Since,
    ) -> Result<usize, ClientError> {
        let queue = destination.queue(partition, None)?;
        let mut records = EqualValues { timestamp_ms: now_ms(), values, size };
        self.shared.accumulator.append_all(&queue, &mut records, since).1?;
        if partition < 0 {
            destination.count_bytes(values.len(), self.shared.config.batch_size);
        }
        Ok(values.len().checked_div(size).unwrap_or(0))
    }

    /// Add one record to a partition of a topic; its latency counts from `sent`.
    ///
    /// # Panics
    /// When the topic has no such partition.
    pub fn send_since(
        &self,
        partitions: &Partitions,
        partition: usize,
        record: &NewRecord<'_>,
        sent: Instant,
    ) -> Result<(), ClientError> {
        self.shared.accumulator.append_since(&partitions.queues[partition], record, sent).map(|_| ())
    }

    /// The numbers of acknowledged and failed records, by partition.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let queues = self.shared.directory.lock().queues();
        let outcomes = queues.into_iter().map(|queue| Outcome {
            topic: Arc::clone(&queue.topic),
            partition: queue.index,
            acknowledged: queue.decided.acknowledged.load(Ordering::Relaxed),
            failed: queue.decided.failed.load(Ordering::Relaxed),
        });
        outcomes.filter(|outcome| outcome.acknowledged + outcome.failed > 0).collect()
    }

    /// Producer id and epoch of an idempotent producer; waits up to `max.block.ms` for the broker to assign them. A failed
    /// batch makes the producer request new ones.
    pub fn identity(&self) -> Result<(i64, i16), ClientError> {
        let config = &self.shared.config;
        if !config.enable_idempotence {
            let (setting, value) = ("enable.idempotence", "false".to_owned());
            return Err(ClientError::BadSetting { setting, value, detail: "must be true for a producer id" });
        }
        self.shared.waker.wake();
        let began = Instant::now();
        let deadline = began + config.max_block;
        let mut identity = self.shared.identity.lock();
        loop {
            match &*identity {
                Some(Ok(ProducerIdentity { id, epoch })) => return Ok((*id, *epoch)),
                Some(Err(error)) => return Err(error.clone()),
                None if self.shared.accumulator.closed.load(Ordering::Acquire) => {
                    return Err(ClientError::Closed { what: "producer" });
                }
                None => {}
            }
            if let Some(refusal) = self.shared.refusal.lock().clone() {
                return Err(refusal);
            }
            if wait_until(&self.shared.identity_changed, &mut identity, deadline)? && identity.is_none() {
                let failure = self.shared.network_failure.lock().clone();
                let detail = failure.map_or("InitProducerId has no answer".to_owned(), |failure| failure.to_string());
                let (servers, waited_ms) = (config.connection.bootstrap_servers.join(","), began.elapsed().as_millis());
                return Err(ClientError::Unreachable { servers, waited_ms: waited_ms as u64, detail });
            }
        }
    }

    /// Send the waiting batches and wait until all are acknowledged or failed.
    pub fn flush(&self, timeout: Duration) -> Result<(), ClientError> {
        self.shared.accumulator.flush(timeout)
    }

    /// Flush, then end the I/O thread. Records that still wait after `timeout` fail.
    ///
    /// # Errors
    /// When the time is up; or when the wait was interrupted, and the producer continues.
    pub fn close(&self, timeout: Duration) -> Result<(), ClientError> {
        if self.thread.lock().is_none() {
            return Ok(());
        }
        let flushed = self.shared.accumulator.flush(timeout);
        if matches!(flushed, Err(ClientError::Interrupted)) {
            return flushed;
        }
        let Some(thread) = self.thread.lock().take() else { return flushed };
        self.shared.accumulator.close();
        self.shared.identity_changed.notify_all();
        // The thread ends by itself; the panic hook has reported a panic in it.
        let _ = thread.join();
        flushed
    }

    /// A descriptor that is readable when batches have completed; `take_decided` returns their ids.
    pub fn decided_descriptor(&self) -> std::io::Result<std::os::fd::RawFd> {
        self.shared.accumulator.signal.descriptor()
    }

    /// The ids of the batches completed since the last call; only after the descriptor was requested.
    pub fn take_decided(&self) -> Vec<u64> {
        self.shared.accumulator.take_decided()
    }

    /// Make `take_decided` return this batch again, and make the descriptor readable.
    pub fn report_again(&self, batch: u64) {
        self.shared.accumulator.report_again(batch);
    }

    /// Make the descriptor readable.
    pub fn rouse(&self) {
        self.shared.accumulator.signal.raise();
    }

    /// Whether the producer was closed, and every batch is acknowledged or failed.
    pub fn is_finished(&self) -> bool {
        self.shared.accumulator.finished.load(Ordering::SeqCst)
    }

    /// The number of batches that are neither acknowledged nor failed.
    pub fn incomplete(&self) -> usize {
        self.shared.accumulator.incomplete()
    }

    /// Set the phase of records sent from here on, which the observer gets.
    pub fn begin_phase(&self, phase: u8) {
        self.shared.accumulator.phase.store(phase, Ordering::Relaxed);
    }

    /// Whether a record failed since the last call to [`undelivered`](Self::undelivered).
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.shared.failures.has_news()
    }

    /// The failed records outside of transactions whose outcome the program has not read. With `take` they are removed.
    pub fn undelivered(&self, take: bool) -> Vec<Undelivered> {
        self.shared.failures.look(take)
    }

    /// The first failure of a record, if one failed.
    pub fn first_failure(&self) -> Option<ClientError> {
        self.shared.first_failure.lock().clone()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let _ = self.close(Duration::ZERO);
    }
}

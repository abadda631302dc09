//! The records that wait to be sent: a queue of batches for each partition, limited by `buffer.memory`.
//!
//! Callers append under one lock for each partition, many records at once if they can; the sender takes whole batches. Knows
//! no socket and no leader.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::batch::Batch;
use super::delivery::{Decided, Delivery, Written};
use super::incomplete::Incomplete;
use super::new_record::{NewRecord, NewRecords, RECORD_OVERHEAD};
use super::since::Since;
use super::transaction::Mark;
use crate::config::ProducerConfig;
use crate::counters::Counters;
use crate::error::ClientError;
use crate::network::pool::BufferPool;
use crate::network::waker::{Signal, Waker};
use crate::wait::wait_until;
use pybroker_record::BatchBuilder;

/// Records appended between two readings of the clock.
const STRIDE_RECORDS: usize = 64;

/// The position of a record: its batch, and its index there.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The outcome of the batch.
    pub delivery: Arc<Delivery>,
    /// The chosen partition.
    pub partition: i32,
    /// The batch's id, as `take_decided` returns it.
    pub batch: u64,
    /// The record's time, ms.
    pub timestamp_ms: i64,
    /// The index in the batch: the record's offset is the batch's base offset plus this.
    pub index: u32,
}

impl Ticket {
    fn of(queue: &Queue, batch: &Batch, timestamp_ms: i64) -> Self {
        let delivery = Arc::clone(&batch.delivery);
        Self { delivery, partition: queue.index, batch: batch.id, timestamp_ms, index: batch.records }
    }
}

/// One partition's batches, oldest first; only the last may be open.
#[derive(Debug)]
pub struct Queue {
    pub topic: Arc<str>,
    pub index: i32,
    pub decided: Arc<Decided>,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    batches: VecDeque<Batch>,
    /// Whether the sender has the queue in its list; the sender reads the queue until it is empty.
    listed: bool,
}

/// The sender's view of a queue's oldest batch.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    pub opened: Instant,
    pub full: bool,
    pub size: usize,
    pub mark: Option<Mark>,
}

/// The state shared by all queues.
#[derive(Debug)]
pub struct Accumulator {
    config: ProducerConfig,
    pub counters: Arc<Counters>,
    waker: Arc<Waker>,
    /// Buffers of acknowledged batches, for new ones.
    pub spare: BufferPool,
    /// Emptied builders of `batch.size`, with their buffers.
    builders: Mutex<Vec<BatchBuilder>>,
    most_spare: usize,
    available: Mutex<usize>,
    freed: Condvar,
    /// Queues that became non-empty since the sender last read this list.
    listed: Mutex<Vec<Arc<Queue>>>,
    /// Batches that are open or sent, and neither acknowledged nor failed.
    pub(crate) incomplete: Mutex<Incomplete>,
    decided: Condvar,
    /// Callers that wait in `flush` or for memory: open batches are sent without lingering.
    hurried: AtomicUsize,
    /// A non-blocking caller found the memory full, and none was released since: as `hurried`.
    starved: AtomicBool,
    pub closed: AtomicBool,
    /// Closed, and every batch is acknowledged or failed.
    pub finished: AtomicBool,
    /// The measurement phase of new records.
    pub phase: AtomicU8,
    /// Raised when batches complete, for an event loop; their ids are in `decided_ids`.
    pub signal: Signal,
    decided_ids: Mutex<Vec<u64>>,
}

impl Queue {
    pub fn new(topic: Arc<str>, index: i32) -> Self {
        Self { decided: Arc::new(Decided::of(Arc::clone(&topic), index)), topic, index, state: Mutex::default() }
    }

    /// The oldest batch, or `None` if there is none; then the queue leaves the sender's list.
    pub fn front(&self) -> Option<Front> {
        let mut state = self.state.lock();
        let waiting = state.batches.len();
        match state.batches.front() {
            Some(batch) => {
                let full = batch.full || waiting > 1;
                Some(Front { opened: batch.opened, full, size: batch.size(), mark: batch.mark })
            }
            None => {
                state.listed = false;
                None
            }
        }
    }

    /// Remove the oldest batch; no record is added to it any more.
    pub fn pop(&self) -> Option<Batch> {
        self.state.lock().batches.pop_front()
    }
}

impl Accumulator {
    pub fn new(config: ProducerConfig, waker: Arc<Waker>) -> Self {
        let spare_buffers = (config.buffer_memory / config.batch_size.max(1)).clamp(2, 64);
        let (window, samples) = (config.connection.metrics_sample_window, config.connection.metrics_num_samples);
        Self {
            counters: Arc::new(Counters::new(window, samples)),
            available: Mutex::new(config.buffer_memory),
            config,
            waker,
            spare: BufferPool::new(spare_buffers),
            builders: Mutex::default(),
            most_spare: spare_buffers,
            freed: Condvar::new(),
            listed: Mutex::default(),
            incomplete: Mutex::default(),
            decided: Condvar::new(),
            hurried: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            phase: AtomicU8::new(0),
            signal: Signal::default(),
            decided_ids: Mutex::default(),
        }
    }

    /// Add one record to a partition's open batch. Blocks up to `max.block.ms` while `buffer.memory` is full.
    pub fn append(&self, queue: &Arc<Queue>, record: &NewRecord<'_>) -> Result<Ticket, ClientError> {
        self.append_since(queue, record, Instant::now())
    }

    /// As [`Accumulator::append`], for a record whose latency counts from `now`.
    pub fn append_since(
        &self,
        queue: &Arc<Queue>,
        record: &NewRecord<'_>,
        now: Instant,
    ) -> Result<Ticket, ClientError> {
        let ticket = self.append_one(queue, record, now, |bytes| self.reserve(bytes).map(Some))?;
        Ok(ticket.expect("a caller that waits for memory gets it, or an error"))
    }

    /// As [`Accumulator::append`] without waiting: `None` while memory is full. The signal is raised when memory is
    /// released.
    pub fn try_append(&self, queue: &Arc<Queue>, record: &NewRecord<'_>) -> Result<Option<Ticket>, ClientError> {
        self.append_one(queue, record, Instant::now(), |bytes| self.try_reserve(bytes))
    }

    fn append_one(
        &self,
        queue: &Arc<Queue>,
        record: &NewRecord<'_>,
        now: Instant,
        reserve: impl Fn(usize) -> Result<Option<usize>, ClientError>,
    ) -> Result<Option<Ticket>, ClientError> {
        let (phase, payload) = (self.phase.load(Ordering::Relaxed), record.payload() as u64);
        let add = |batch: &mut Batch| {
            batch.builder()?.try_append(record.timestamp_ms, record.key, record.value, record.headers)?;
            let ticket = Ticket::of(queue, batch, record.timestamp_ms);
            batch.count(1, payload, phase, now);
            Some(ticket)
        };
        self.append_with(queue, record.upper_bound(), add, reserve)
    }

    /// Add records of one partition in order; their latency counts from `since`. Takes the lock once for each batch. Returns
    /// how many were added, and the error that stopped it.
    pub fn append_all(
        &self,
        queue: &Arc<Queue>,
        records: &mut impl NewRecords,
        since: Since,
    ) -> (usize, Result<(), ClientError>) {
        self.append_all_noting(queue, records, since, |_, _| ())
    }

    /// As [`Accumulator::append_all`]; `note` gets each batch's outcome and the range of records added to the batch.
    pub fn append_all_noting(
        &self,
        queue: &Arc<Queue>,
        records: &mut impl NewRecords,
        since: Since,
        mut note: impl FnMut(&Arc<Delivery>, Range<usize>),
    ) -> (usize, Result<(), ClientError>) {
        let (phase, together) = (self.phase.load(Ordering::Relaxed), since.shared_by(STRIDE_RECORDS));
        let (count, mut next) = (records.count(), 0);
        while next < count {
            let bound = records.with(next, |record| record.upper_bound());
            let add = |batch: &mut Batch| {
                let before = next;
                loop {
                    let (now, first, mut bytes) = (since.of(next), next, 0);
                    let stride = count.min(first + together);
                    let builder = batch.builder()?;
                    while next < stride
                        && let Some(payload) = records.with(next, |record| {
                            let NewRecord { timestamp_ms, key, value, headers } = *record;
                            builder.try_append(timestamp_ms, key, value, headers).map(|_| record.payload())
                        })
                    {
                        bytes += payload as u64;
                        next += 1;
                    }
                    if next > first {
                        batch.count((next - first) as u32, bytes, phase, now);
                        note(&batch.delivery, first..next);
                    }
                    if next < stride || next == count {
                        return (next > before).then_some(());
                    }
                }
            };
            if let Err(error) = self.append_with(queue, bound, add, |bytes| self.reserve(bytes).map(Some)) {
                return (next, Err(error));
            }
        }
        (next, Ok(()))
    }

    /// Reject a record that exceeds the size of a request.
    pub fn check_size(&self, topic: &str, record_bound: usize) -> Result<(), ClientError> {
        let (size, limit) = (record_bound - RECORD_OVERHEAD, self.config.max_request_size);
        if size <= limit {
            return Ok(());
        }
        Err(ClientError::RecordTooLarge { topic: topic.to_owned(), size, limit, setting: "max.request.size" })
    }

    /// Run `add` on the open batch. If there is none or the record does not fit, open a new batch with memory from
    /// `reserve`. Returns `None` if `reserve` grants none.
    fn append_with<R>(
        &self,
        queue: &Arc<Queue>,
        record_bound: usize,
        mut add: impl FnMut(&mut Batch) -> Option<R>,
        reserve: impl Fn(usize) -> Result<Option<usize>, ClientError>,
    ) -> Result<Option<R>, ClientError> {
        self.check_size(&queue.topic, record_bound)?;
        let mut granted: Option<usize> = None;
        loop {
            let mut state = queue.state.lock();
            // Checked under the lock: the sender, which ends after this was set, empties every queue once more.
            if self.closed.load(Ordering::Acquire) {
                drop(state);
                self.release(granted.take().unwrap_or(0));
                return Err(ClientError::Closed { what: "producer" });
            }
            let mut found = state.batches.back_mut().and_then(&mut add);
            let filled =
                found.is_none() && state.batches.back_mut().is_some_and(|b| !std::mem::replace(&mut b.full, true));
            if found.is_none()
                && let Some(bytes) = granted.take()
            {
                let mut batch = match self.open_batch(bytes, Arc::clone(&queue.decided)) {
                    Ok(batch) => batch,
                    Err(error) => {
                        drop(state);
                        self.release(bytes);
                        return Err(error);
                    }
                };
                found = add(&mut batch);
                state.batches.push_back(batch);
            }
            let news = !state.batches.is_empty() && !std::mem::replace(&mut state.listed, true);
            drop(state);
            if news {
                self.listed.lock().push(Arc::clone(queue));
            }
            if news || filled {
                self.waker.wake();
            }
            if let Some(result) = found {
                self.release(granted.take().unwrap_or(0));
                return Ok(Some(result));
            }
            granted = reserve(self.config.batch_size.max(record_bound))?;
            if granted.is_none() {
                return Ok(None);
            }
        }
    }

    fn open_batch(&self, bytes: usize, decided: Arc<Decided>) -> Result<Batch, ClientError> {
        let (id, mark) = self.incomplete.lock().open()?;
        let usual = bytes == self.config.batch_size;
        let spare = if usual { self.builders.lock().pop() } else { None };
        let (compression, level) = (self.config.compression, self.config.compression_level);
        let builder = spare.unwrap_or_else(|| BatchBuilder::new(compression, level, bytes));
        Ok(Batch::open(id, builder, bytes, decided, mark))
    }

    /// Keep an empty builder for the next batch.
    pub fn keep_builder(&self, builder: BatchBuilder, reserved: usize) {
        let mut builders = self.builders.lock();
        if reserved == self.config.batch_size && builders.len() < self.most_spare {
            builders.push(builder);
        }
    }

    fn reserve(&self, bytes: usize) -> Result<usize, ClientError> {
        self.check_fits(bytes)?;
        let deadline = Instant::now() + self.config.max_block;
        let mut available = self.available.lock();
        if *available < bytes {
            let _hurry = self.hurry();
            let mut late = false;
            while *available < bytes && !late && !self.closed.load(Ordering::Acquire) {
                late = wait_until(&self.freed, &mut available, deadline)?;
            }
            if self.closed.load(Ordering::Acquire) {
                return Err(ClientError::Closed { what: "producer" });
            }
            if *available < bytes {
                return Err(self.full(bytes, self.config.max_block));
            }
        }
        *available -= bytes;
        Ok(bytes)
    }

    fn try_reserve(&self, bytes: usize) -> Result<Option<usize>, ClientError> {
        self.check_fits(bytes)?;
        let mut available = self.available.lock();
        if *available < bytes {
            self.starved.store(true, Ordering::SeqCst);
            drop(available);
            self.waker.wake();
            return Ok(None);
        }
        *available -= bytes;
        Ok(Some(bytes))
    }

    /// The error of a record for which memory stayed full for so long.
    pub fn full(&self, needed: usize, waited: Duration) -> ClientError {
        ClientError::BufferFull { needed, limit: self.config.buffer_memory, waited_ms: waited.as_millis() as u64 }
    }

    fn check_fits(&self, bytes: usize) -> Result<(), ClientError> {
        if bytes > self.config.buffer_memory { Err(self.full(bytes, Duration::ZERO)) } else { Ok(()) }
    }

    fn release(&self, bytes: usize) {
        if bytes > 0 {
            let mut available = self.available.lock();
            *available += bytes;
            self.starved.store(false, Ordering::SeqCst);
            drop(available);
            self.freed.notify_all();
        }
    }

    /// Send open batches without lingering until the guard is dropped.
    fn hurry(&self) -> Hurry<'_> {
        self.hurried.fetch_add(1, Ordering::SeqCst);
        self.waker.wake();
        Hurry(&self.hurried)
    }

    /// Whether open batches should be sent without lingering.
    pub fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::SeqCst) > 0 || self.starved.load(Ordering::SeqCst)
    }

    /// Free bytes of `buffer.memory`.
    pub fn available(&self) -> usize {
        *self.available.lock()
    }

    /// Remove and return the queues that became non-empty, for the sender.
    pub fn take_listed(&self) -> Vec<Arc<Queue>> {
        std::mem::take(&mut *self.listed.lock())
    }

    /// Whether a queue became non-empty, so that the sender should not sleep.
    pub fn has_news(&self) -> bool {
        !self.listed.lock().is_empty()
    }

    /// Set the outcome of a batch: releases its memory and buffer, and wakes the callers that wait for it or in `flush`.
    ///
    /// A caller that sees the outcome knows that `flush` does not count the batch any more, and a caller that returns from
    /// `flush` sees the outcome.
    pub fn complete(&self, batch: Batch, outcome: Result<Written, ClientError>) {
        self.counters.decided(&batch, outcome.is_ok());
        self.release(batch.reserved);
        let (id, delivery) = (batch.id, Arc::clone(&batch.delivery));
        if let Some(buffer) = batch.into_buffer() {
            self.spare.put(buffer);
        }
        let mut incomplete = self.incomplete.lock();
        incomplete.ids.remove(&id);
        delivery.decide(outcome);
        if self.signal.is_watched() {
            self.decided_ids.lock().push(id);
        }
        drop(incomplete);
        self.decided.notify_all();
        self.signal.raise();
    }

    /// Report the id of a batch again that completed before the caller watched it.
    pub fn report_again(&self, id: u64) {
        self.decided_ids.lock().push(id);
        self.signal.raise();
    }

    /// The ids of the batches completed since the last call; only while the signal is watched.
    pub fn take_decided(&self) -> Vec<u64> {
        self.signal.clear();
        std::mem::take(&mut *self.decided_ids.lock())
    }

    /// Wait until every batch opened so far is acknowledged or failed.
    pub fn flush(&self, timeout: Duration) -> Result<(), ClientError> {
        let deadline = Instant::now() + timeout;
        let mut incomplete = self.incomplete.lock();
        let limit = incomplete.next_id;
        let hurry = self.hurry();
        let mut late = false;
        while incomplete.ids.first().is_some_and(|id| *id < limit) && !late {
            late = wait_until(&self.decided, &mut incomplete, deadline)?;
        }
        drop(hurry);
        match incomplete.ids.range(..limit).count() {
            0 => Ok(()),
            batches => Err(ClientError::FlushTimeout { batches, waited_ms: timeout.as_millis() as u64 }),
        }
    }

    /// Reject further records, and wake the callers that wait for memory.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.freed.notify_all();
        self.signal.raise();
        self.waker.wake();
    }

    /// Record that every batch is complete, and none follows.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::SeqCst);
        self.signal.raise();
    }

    /// The number of batches that are neither acknowledged nor failed.
    pub fn incomplete(&self) -> usize {
        self.incomplete.lock().ids.len()
    }
}

/// Guard: open batches are sent without lingering until it is dropped.
struct Hurry<'a>(&'a AtomicUsize);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

//! Sends lines as records, a block at a time, and reports each that fails.
//!
//! Owns the records of each incomplete batch: failures are reported by record, as in Kafka's console producer.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use pybroker_record::RecordHeader;
use rustc_hash::FxHashMap;

use super::lines::{BadLine, Line, LineFormat, Lines, LinesSplitter};
use crate::clock::now_ms;
use crate::error::ClientError;
use crate::producer::Producer;
use crate::producer::delivery::Delivery;
use crate::producer::destination::Destination;
use crate::producer::new_record::{NewRecord, NewRecords};
use crate::producer::since::Since;

/// Bytes of a record's key and value; `None` is null.
type Sizes = (Option<u32>, Option<u32>);

/// A record that failed.
#[derive(Debug, Clone)]
pub struct LineFailure {
    /// Bytes of its key.
    pub key: Option<u32>,
    /// Bytes of its value.
    pub value: Option<u32>,
    pub error: ClientError,
}

/// The reason why no further line can be sent.
#[derive(Debug, Clone)]
pub enum SendError {
    /// An invalid line; the lines before it were sent.
    Bad(BadLine),
    /// The producer was closed, or the wait was interrupted.
    Ended(ClientError),
}

/// The records of one incomplete batch.
#[derive(Debug)]
struct InFlight {
    delivery: Arc<Delivery>,
    records: Vec<Sizes>,
}

#[derive(Debug, Default)]
struct State {
    splitter: LinesSplitter,
    /// Batches in the order in which they were begun.
    waiting: VecDeque<InFlight>,
    /// By partition, the last batch: further records may join it.
    open: FxHashMap<i32, InFlight>,
    failures: Vec<LineFailure>,
}

/// Sends lines to one topic.
#[derive(Debug)]
pub struct LineSender {
    producer: Arc<Producer>,
    topic: String,
    format: LineFormat,
    state: Mutex<State>,
}

/// The lines of one partition, as records.
struct LineRecords<'a> {
    whole: &'a [u8],
    found: &'a Lines,
    rows: &'a [usize],
    now_ms: i64,
    headers: Vec<RecordHeader<'a>>,
}

fn with_line<'a, R>(
    whole: &'a [u8],
    found: &'a Lines,
    row: usize,
    now_ms: i64,
    headers: &mut Vec<RecordHeader<'a>>,
    look: impl FnOnce(&NewRecord<'_>) -> R,
) -> R {
    let line = &found.lines[row];
    headers.clear();
    let given = &found.headers[line.headers.clone()];
    headers.extend(given.iter().map(|(key, value)| (&whole[key.clone()], value.clone().map(|value| &whole[value]))));
    let part = |part: &Option<std::ops::Range<usize>>| part.clone().map(|part| &whole[part]);
    look(&NewRecord { timestamp_ms: now_ms, key: part(&line.key), value: part(&line.value), headers })
}

impl NewRecords for LineRecords<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn with<R>(&mut self, number: usize, look: impl FnOnce(&NewRecord<'_>) -> R) -> R {
        with_line(self.whole, self.found, self.rows[number], self.now_ms, &mut self.headers, look)
    }
}

fn sizes(line: &Line) -> Sizes {
    let size = |part: &Option<std::ops::Range<usize>>| part.as_ref().map(|part| part.len() as u32);
    (size(&line.key), size(&line.value))
}

impl LineSender {
    /// Send to this topic; the producer chooses the partitions.
    pub fn new(producer: Arc<Producer>, topic: String, format: LineFormat) -> Self {
        Self { producer, topic, format, state: Mutex::default() }
    }

    /// Send the lines that end in `block`, and with `is_end` the last one; returns how many were added to batches. A line
    /// that cannot be added is a failure of its own. Waits for metadata and for memory, each up to `max.block.ms`.
    ///
    /// # Errors
    /// A line that does not fit the format; a closed producer, or an interrupted wait.
    pub fn send(&self, block: &[u8], is_end: bool) -> Result<usize, SendError> {
        let mut state = self.state.lock();
        let whole = state.splitter.split(block, is_end);
        let found = state.splitter.parse(&whole, &self.format);
        let sent = state.send_all(self, &whole, &found).map_err(SendError::Ended)?;
        state.complete();
        match found.failure {
            Some(bad) => Err(SendError::Bad(bad)),
            None => Ok(sent),
        }
    }

    /// Parse the lines that end in `block`, and with `is_end` the last one, without sending; calls `look` with each record.
    ///
    /// # Errors
    /// A line that does not fit the format, after those before it.
    pub fn parse(&self, block: &[u8], is_end: bool, mut look: impl FnMut(&NewRecord<'_>)) -> Result<(), BadLine> {
        let mut state = self.state.lock();
        let whole = state.splitter.split(block, is_end);
        let found = state.splitter.parse(&whole, &self.format);
        let (now_ms, mut headers) = (now_ms(), Vec::new());
        for row in 0..found.lines.len() {
            with_line(&whole, &found, row, now_ms, &mut headers, &mut look);
        }
        found.failure.map_or(Ok(()), Err)
    }

    /// Records in incomplete batches.
    pub fn in_flight(&self) -> usize {
        let mut state = self.state.lock();
        state.complete();
        state.waiting.iter().chain(state.open.values()).map(|batch| batch.records.len()).sum()
    }

    /// The records that failed since the last call.
    pub fn take_failures(&self) -> Vec<LineFailure> {
        let mut state = self.state.lock();
        state.complete();
        std::mem::take(&mut state.failures)
    }
}

impl State {
    fn send_all(&mut self, to: &LineSender, whole: &[u8], found: &Lines) -> Result<usize, ClientError> {
        if found.lines.is_empty() {
            return Ok(0);
        }
        let destination = match to.producer.destination(&to.topic) {
            Ok(destination) => destination,
            Err(error @ (ClientError::Closed { .. } | ClientError::Interrupted)) => return Err(error),
            Err(error) => {
                found.lines.iter().for_each(|line| self.fail(sizes(line), error.clone()));
                return Ok(0);
            }
        };
        let (now_ms, queues) = (now_ms(), destination.queues());
        let partitions = queues.len();
        let (mut sent, rows) = (0, self.route(to, (&destination, partitions), whole, found, now_ms));
        for (queue, rows) in queues.iter().zip(&rows) {
            let mut left = &rows[..];
            while !left.is_empty() {
                let mut records = LineRecords { whole, found, rows: left, now_ms, headers: Vec::new() };
                let note = |delivery: &Arc<Delivery>, added: std::ops::Range<usize>| {
                    let added = left[added].iter().map(|row| sizes(&found.lines[*row]));
                    self.note(queue.index, delivery, added);
                };
                let accumulator = &to.producer.shared.accumulator;
                let (added, ended) = accumulator.append_all_noting(queue, &mut records, Since::SENT, note);
                (sent, left) = (sent + added, &left[added..]);
                match ended {
                    Ok(()) => {}
                    Err(error @ (ClientError::Closed { .. } | ClientError::Interrupted)) => return Err(error),
                    Err(error) => {
                        // The record that caused the error fails; those behind it are tried on their own.
                        self.fail(sizes(&found.lines[left[0]]), error);
                        left = &left[1..];
                    }
                }
            }
        }
        Ok(sent)
    }

    /// By partition, the lines in order; lines too large for a request have failed. `target` is a topic and the number of
    /// its partitions.
    fn route(
        &mut self,
        to: &LineSender,
        target: (&Destination, usize),
        whole: &[u8],
        found: &Lines,
        now_ms: i64,
    ) -> Vec<Vec<usize>> {
        let (shared, (destination, partitions)) = (&to.producer.shared, target);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); partitions];
        let mut headers = Vec::new();
        for row in 0..found.lines.len() {
            let chosen = with_line(whole, found, row, now_ms, &mut headers, |record| -> Result<usize, ClientError> {
                shared.accumulator.check_size(&destination.name, record.upper_bound())?;
                let chosen = destination.choose(record.key, partitions);
                destination.count(record, shared.config.batch_size);
                Ok(chosen)
            });
            match chosen {
                Ok(partition) => rows[partition].push(row),
                Err(error) => self.fail(sizes(&found.lines[row]), error),
            }
        }
        rows
    }

    fn note(&mut self, partition: i32, delivery: &Arc<Delivery>, added: impl Iterator<Item = Sizes>) {
        let begin = || InFlight { delivery: Arc::clone(delivery), records: Vec::new() };
        let last = self.open.entry(partition).or_insert_with(begin);
        if !Arc::ptr_eq(&last.delivery, delivery) {
            self.waiting.push_back(std::mem::replace(last, begin()));
        }
        let before = last.records.len();
        last.records.extend(added);
        // Their failures are reported by `take_failures`.
        delivery.observe((last.records.len() - before) as u32);
    }

    fn fail(&mut self, (key, value): Sizes, error: ClientError) {
        self.failures.push(LineFailure { key, value, error });
    }

    /// Remove completed batches; of failed ones, record each record's failure.
    fn complete(&mut self) {
        let decided: Vec<i32> =
            self.open.iter().filter(|(_, batch)| batch.delivery.is_decided()).map(|(index, _)| *index).collect();
        let ended = decided.iter().filter_map(|index| self.open.remove(index));
        let mut ended: Vec<InFlight> = ended.collect();
        while self.waiting.front().is_some_and(|batch| batch.delivery.is_decided()) {
            ended.extend(self.waiting.pop_front());
        }
        for batch in ended {
            if let Some(Err(error)) = batch.delivery.outcome() {
                batch.records.into_iter().for_each(|sizes| self.fail(sizes, error.clone()));
            }
        }
    }
}

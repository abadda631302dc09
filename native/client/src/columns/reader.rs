//! A fetcher whose records come as columns, and the rest of a chunk of which some were given out.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::Array;
use parking_lot::Mutex;

use super::pieces::Pieces;
use super::{Pick, RecordColumns};
use crate::error::ClientError;
use crate::fetcher::Fetcher;
use crate::fetcher::inbox::{Assignment, Start};

#[derive(Debug, Default)]
struct Held {
    /// A chunk that is not done.
    rest: Option<Pieces>,
    /// Memory for decompressing, while no chunk has it.
    scratch: Vec<u8>,
}

/// The columnar face of a fetcher. Who reads by it takes nothing from the fetcher otherwise.
#[derive(Debug)]
pub struct ColumnReader {
    fetcher: Arc<Fetcher>,
    held: Mutex<Held>,
}

impl ColumnReader {
    /// Reads what the fetcher is assigned.
    pub fn new(fetcher: Arc<Fetcher>) -> Self {
        Self { fetcher, held: Mutex::default() }
    }

    /// Read these partitions from now on, and no others.
    pub fn assign(&self, assignment: Vec<Assignment>) {
        let mut held = self.held.lock();
        held.drop_rest();
        self.fetcher.assign(assignment);
    }

    /// Read one assigned partition from another position; false when it is not assigned.
    pub fn seek(&self, topic: &str, index: i32, start: Start) -> bool {
        let mut held = self.held.lock();
        if held.rest.as_ref().is_some_and(|rest| rest.partition() == (topic, index)) {
            held.drop_rest();
        }
        self.fetcher.seek(topic, index, start)
    }

    /// Where the caller has read to, by partition.
    pub fn positions(&self) -> Vec<Assignment> {
        let held = self.held.lock();
        let mut positions = self.fetcher.positions();
        if let Some(rest) = &held.rest {
            let rests = positions.iter_mut().filter(|p| (&*p.topic, p.index) == rest.partition());
            rests.for_each(|p| p.start = Start::Offset(rest.position()));
        }
        positions
    }

    /// The next records of one partition; `None` when nothing came in time. Perhaps without rows: where batches hold no
    /// record for a consumer, and where the rest begins at `end`.
    pub fn take(&self, timeout: Duration, pick: Pick<'_>) -> Result<Option<RecordColumns>, ClientError> {
        let mut held = self.held.lock();
        if held.rest.is_none() {
            let Some(chunk) = self.fetcher.next(timeout)? else { return Ok(None) };
            let scratch = std::mem::take(&mut held.scratch);
            held.rest = Some(Pieces::new(chunk, scratch));
        }
        let Some(rest) = &mut held.rest else { return Ok(None) };
        let taken = rest.take(pick);
        if rest.is_done() {
            held.drop_rest();
        }
        if let Ok(columns) = &taken {
            self.fetcher.consumed(columns.array.len());
        }
        taken.map(Some)
    }
}

impl Held {
    fn drop_rest(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.scratch = rest.into_scratch();
        }
    }
}

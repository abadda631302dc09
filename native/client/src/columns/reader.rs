//! A fetcher that returns its records as columns, with the rest of a chunk that was returned in part.

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
    /// A chunk with records left.
    rest: Option<Pieces>,
    /// Memory for decompression, while no chunk uses it.
    scratch: Vec<u8>,
}

/// The columnar interface of a fetcher. Its user must not read from the fetcher directly.
#[derive(Debug)]
pub struct ColumnReader {
    fetcher: Arc<Fetcher>,
    held: Mutex<Held>,
}

impl ColumnReader {
    /// Read the partitions assigned to the fetcher.
    pub fn new(fetcher: Arc<Fetcher>) -> Self {
        Self { fetcher, held: Mutex::default() }
    }

    /// Read these partitions, and no others.
    pub fn assign(&self, assignment: Vec<Assignment>) {
        let mut held = self.held.lock();
        held.drop_rest();
        self.fetcher.assign(assignment);
    }

    /// Move one assigned partition to another position; false if it is not assigned.
    pub fn seek(&self, topic: &str, index: i32, start: Start) -> bool {
        let mut held = self.held.lock();
        if held.rest.as_ref().is_some_and(|rest| rest.partition() == (topic, index)) {
            held.drop_rest();
        }
        self.fetcher.seek(topic, index, start)
    }

    /// The caller's positions, by partition.
    pub fn positions(&self) -> Vec<Assignment> {
        let held = self.held.lock();
        let mut positions = self.fetcher.positions();
        if let Some(rest) = &held.rest {
            let rests = positions.iter_mut().filter(|p| (&*p.topic, p.index) == rest.partition());
            rests.for_each(|p| p.start = Start::Offset(rest.position()));
        }
        positions
    }

    /// The next records of one partition; `None` if none arrived within the timeout. May have no rows: if batches have no
    /// record for a consumer, or if the rest begins at `end`.
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

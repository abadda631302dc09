//! The lane: Produce and Fetch from the frame to the answer, without leaving the thread.
//!
//! Each API has its own file. What they share is here: which versions are served, and what can become of a request.

mod errors;
mod fetch;
mod produce;

use std::ops::RangeInclusive;

pub use fetch::PendingFetch;

use super::data_plane::Shared;
use super::elsewhere::SMALL_APPEND_BYTES;
use super::response::Response;
use crate::replica::Waiter;
use crate::wire::frame::RequestHead;

/// Produce versions that the lane answers.
pub const PRODUCE_VERSIONS: RangeInclusive<i16> = 3..=13;
/// Fetch versions that the lane answers.
pub const FETCH_VERSIONS: RangeInclusive<i16> = 4..=18;

/// The APIs of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneApi {
    /// API key 0.
    Produce,
    /// API key 1.
    Fetch,
}

/// Whether an API key stays in the lane.
pub fn of(api_key: i16) -> Option<LaneApi> {
    match api_key {
        0 => Some(LaneApi::Produce),
        1 => Some(LaneApi::Fetch),
        _ => None,
    }
}

/// Refuses a version that is not served; Kafka closes the connection then, as the answer's format is unknown.
pub fn check_version(api: LaneApi, version: i16) -> Result<(), String> {
    let served = match api {
        LaneApi::Produce => PRODUCE_VERSIONS,
        LaneApi::Fetch => FETCH_VERSIONS,
    };
    if served.contains(&version) {
        return Ok(());
    }
    Err(format!("{api:?} version {version} is not served; {} to {} are", served.start(), served.end()))
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It is answered.
    Answer(Response),
    /// It is done and wants no answer (`acks=0`).
    Silent,
    /// It waits for data.
    Wait(Box<PendingFetch>),
    /// It names topics that the table lacks: Python looks at it once.
    Undecided {
        /// The API key.
        api_key: i16,
        /// Topics by name.
        topics: Vec<String>,
        /// Topics by id.
        topic_ids: Vec<[u8; 16]>,
    },
    /// The connection has to be closed, and why.
    Close(String),
}

/// The lane of one processor. It keeps nothing between requests yet.
#[derive(Debug, Default)]
pub struct Lane {}

impl Lane {
    /// A lane.
    pub fn new() -> Self {
        Self::default()
    }

    /// Works on one frame of an API of the lane. `decided`: the control plane has looked already, so that topics still
    /// unknown are answered as unknown.
    pub fn handle(
        &mut self,
        shared: &Shared,
        own: usize,
        woken: &mut Vec<Waiter>,
        waiter: Waiter,
        frame: &mut [u8],
        decided: bool,
    ) -> Outcome {
        let head = match RequestHead::parse(frame) {
            Ok(head) => head,
            Err(error) => return Outcome::Close(error.to_string()),
        };
        match of(head.api_key) {
            Some(LaneApi::Produce) => {
                let near = frame.len() <= SMALL_APPEND_BYTES;
                let mut wake = |waiter| super::processor::wake(shared, own, near, woken, waiter);
                produce::handle(shared, &head, frame, decided, &mut wake)
            }
            Some(LaneApi::Fetch) => fetch::handle(shared, &head, frame, decided, waiter),
            None => Outcome::Close(format!("API key {} is not of the lane", head.api_key)),
        }
    }

    /// Answers a fetch that has waited, with what there is now.
    pub fn complete(&mut self, shared: &Shared, fetch: PendingFetch) -> Response {
        fetch.complete(shared)
    }
}

//! The hot path: Produce and Fetch from the frame to the answer, without leaving the thread.
//!
//! Each API has its own file. What they share is here: which versions are served, and what can become of a request.

mod errors;
mod fetch;
mod produce;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

pub use fetch::PendingFetch;
pub use produce::PendingProduce;

use super::cross_thread::SMALL_APPEND_BYTES;
use super::data_plane::Shared;
use super::response::Response;
use pybroker_replica::Waiter;
use pybroker_wire::ApiKey;
use pybroker_wire::frame::RequestHead;

/// Produce versions that the hot path answers.
pub const PRODUCE_VERSIONS: RangeInclusive<i16> = 0..=13;
/// Fetch versions that the hot path answers.
pub const FETCH_VERSIONS: RangeInclusive<i16> = 0..=18;

/// The APIs of the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPathApi {
    Produce,
    Fetch,
}

/// Whether an API key stays on the hot path.
pub fn of(api_key: ApiKey) -> Option<HotPathApi> {
    match api_key {
        ApiKey::PRODUCE => Some(HotPathApi::Produce),
        ApiKey::FETCH => Some(HotPathApi::Fetch),
        _ => None,
    }
}

/// Refuses a version that is not served; Kafka closes the connection then, as the answer's format is unknown.
pub fn check_version(api: HotPathApi, version: i16) -> Result<(), String> {
    let served = match api {
        HotPathApi::Produce => PRODUCE_VERSIONS,
        HotPathApi::Fetch => FETCH_VERSIONS,
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
    /// It waits until what it appended may be acknowledged.
    WaitForAcknowledgement(Box<PendingProduce>),
    /// It names topics that the table lacks: Python looks at it once.
    Unresolved {
        /// The API key.
        api_key: ApiKey,
        /// Topics by name.
        topics: Vec<String>,
        /// Topics by id.
        topic_ids: Vec<[u8; 16]>,
    },
    /// The connection has to be closed, and why.
    Close(String),
}

/// Works on one frame of an API of the hot path, whose `head` has been read. `decided`: the control plane has looked already,
/// so that topics still unknown are answered as unknown.
pub fn handle(
    on: Site<'_>,
    (api, head): (HotPathApi, &RequestHead),
    waiter: Waiter,
    frame: &mut [u8],
    decided: bool,
) -> Outcome {
    match api {
        HotPathApi::Produce => {
            let near = frame.len() <= SMALL_APPEND_BYTES;
            let mut wake = |waiter| super::processor::wake(on.shared, on.processor, near, on.woken, waiter);
            produce::handle(on.shared, head, frame, decided, waiter, &mut wake)
        }
        HotPathApi::Fetch => fetch::handle(on.shared, head, frame, decided, waiter),
    }
}

/// Where a request is worked on.
pub struct Site<'a> {
    /// What all processors share.
    pub shared: &'a Shared,
    /// The processor's number.
    pub processor: usize,
    /// Its own fetches that an append satisfied.
    pub woken: &'a mut VecDeque<Waiter>,
}

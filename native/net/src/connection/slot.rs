//! What becomes of the requests of a connection until they are answered.
//!
//! Owns the states of a request; [`crate::connection`] keeps them in order. Must not know sockets.

use crate::connection::response::Response;
use crate::delayed_operations::verification::Verification;
use crate::hot_path::{HotPathApi, PendingFetch, PendingProduce, Verdict};
use pybroker_wire::ApiKey;
use pybroker_wire::frame::RequestHead;

/// When a connection that is about to end does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// When what is queued is written.
    WhenWritten,
    /// When what is in work is answered and written.
    WhenAnswered,
}

/// From where on a connection's requests are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The first such request.
    pub from: u64,
    /// Whether the connection is closed when that request would be answered.
    pub close: bool,
}

/// A request that the control plane answers.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its correlation id, which the answer carries again.
    pub correlation_id: i32,
    pub api_key: ApiKey,
    pub api_version: i16,
    /// Whether it came as a bare token, and its answer goes out as one.
    pub bare: bool,
}

/// What became of a request.
#[derive(Debug)]
pub enum Slot {
    /// Python answers it.
    Control(Asked),
    /// As [`Slot::Control`], but kept waiting for what others do: it takes none of the room for control requests.
    Held(Asked),
    /// A fetch waits for data.
    Fetch(Box<PendingFetch>),
    /// A produce waits for its batches to be committed.
    Produce(Box<PendingProduce>),
    /// It stands in [`crate::connection::Connection::parked`], or is being completed.
    Parked(HotPathApi),
    /// Its answer, not yet at the front.
    Ready(Response),
}

/// A frame that the control plane looks at before the hot path can go on.
#[derive(Debug)]
pub struct Parked {
    /// The request's number.
    pub request: u64,
    /// Which API of the hot path it is of.
    pub api: HotPathApi,
    pub head: RequestHead,
    /// The frame without its size prefix.
    pub frame: Vec<u8>,
    /// What the control plane has said of its client's rights.
    pub verdict: Option<Verdict>,
    /// What the coordinator of its transaction has said, or is asked.
    pub verification: Option<Verification>,
    /// Whether the control plane is looking at it.
    pub asked: bool,
}

impl Parked {
    /// Lets the control plane look at it again; false where it has said already what is asked.
    pub fn ask_again(&mut self, verification: Option<Verification>) -> bool {
        self.asked = match verification {
            Some(_) => self.verification.is_none(),
            None => self.verdict.is_none(),
        };
        if self.asked && verification.is_some() {
            self.verification = verification;
        }
        self.asked
    }
}

impl Slot {
    /// Which API of the hot path it is of, where it waits.
    pub(crate) fn waits_as(&self) -> Option<HotPathApi> {
        match self {
            Slot::Fetch(_) => Some(HotPathApi::Fetch),
            Slot::Produce(_) => Some(HotPathApi::Produce),
            Slot::Control(_) | Slot::Held(_) | Slot::Parked(_) | Slot::Ready(_) => None,
        }
    }

    /// Memory that it takes beyond itself.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Slot::Fetch(fetch) => fetch.memory(),
            Slot::Ready(response) => response.memory(),
            Slot::Control(_) | Slot::Held(_) | Slot::Produce(_) | Slot::Parked(_) => 0,
        }
    }
}

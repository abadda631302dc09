//! The states of a connection's requests until their responses.
//!
//! Owns the state of a request; [`crate::connection`] keeps the order. Must not know sockets.

use crate::connection::response::Response;
use crate::delayed_operations::verification::Verification;
use crate::hot_path::{Authorization, HotPathApi, PendingFetch, PendingProduce};
use pybroker_wire::ApiKey;
use pybroker_wire::frame::RequestHead;

/// When a closing connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// After the queued bytes are written.
    WhenWritten,
    /// After the requests in work have responses and these are written.
    WhenResponded,
}

/// The part of a connection's requests that get no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The first such request.
    pub from: u64,
    /// Whether the connection is closed when that request would be answered.
    pub close: bool,
}

/// A request that the control plane responds to.
#[derive(Clone, Copy, Debug)]
pub struct Requested {
    /// The correlation id, which the response repeats.
    pub correlation_id: i32,
    pub api_key: ApiKey,
    pub api_version: i16,
    /// Whether the request is a bare token, and its response too.
    pub bare: bool,
}

/// The state of a request.
#[derive(Debug)]
pub enum Slot {
    /// Python responds to it.
    Control(Requested),
    /// As [`Slot::Control`], but its response waits for other clients: it occupies no slot of `queued.max.requests`.
    Held(Requested),
    /// A fetch waits for data.
    Fetch(Box<PendingFetch>),
    /// A produce waits for its batches to be committed.
    Produce(Box<PendingProduce>),
    /// The request is in [`crate::connection::Connection::delayed`], or is being completed.
    Delayed(HotPathApi),
    /// The response, which waits for earlier responses.
    Ready(Response),
}

/// A hot-path request that waits for the control plane.
#[derive(Debug)]
pub struct Delayed {
    /// The request's number.
    pub request: u64,
    /// Produce or Fetch.
    pub api: HotPathApi,
    pub head: RequestHead,
    /// The frame without its size prefix.
    pub frame: Vec<u8>,
    /// The control plane's authorization.
    pub decision: Option<Authorization>,
    /// The query for the transaction coordinator, and its response.
    pub verification: Option<Verification>,
    /// Whether the control plane's response is pending.
    pub requested: bool,
}

impl Delayed {
    /// Sends the request to the control plane again; false if the control plane has already responded to this question.
    pub fn query_again(&mut self, verification: Option<Verification>) -> bool {
        self.requested = match verification {
            Some(_) => self.verification.is_none(),
            None => self.decision.is_none(),
        };
        if self.requested && verification.is_some() {
            self.verification = verification;
        }
        self.requested
    }
}

impl Slot {
    /// The API of a waiting hot-path request; `None` in other states.
    pub(crate) fn waits_as(&self) -> Option<HotPathApi> {
        match self {
            Slot::Fetch(_) => Some(HotPathApi::Fetch),
            Slot::Produce(_) => Some(HotPathApi::Produce),
            Slot::Control(_) | Slot::Held(_) | Slot::Delayed(_) | Slot::Ready(_) => None,
        }
    }

    /// Heap memory of the request.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Slot::Fetch(fetch) => fetch.memory(),
            Slot::Ready(response) => response.memory(),
            Slot::Control(_) | Slot::Held(_) | Slot::Produce(_) | Slot::Delayed(_) => 0,
        }
    }
}

//! What becomes of the requests of a connection until they are answered.
//!
//! Owns the states of a request; [`super::connection`] keeps them in order. Must not know sockets.

use super::hot_path::{HotPathApi, PendingFetch, PendingProduce};
use super::response::Response;
use pybroker_wire::frame::RequestHead;

/// What became of a request.
#[derive(Debug)]
pub enum Slot {
    /// Python answers it; the number is its correlation id.
    Control(i32),
    /// As [`Slot::Control`], but kept waiting for what others do: it takes none of the room for control requests.
    Held(i32),
    /// A fetch waits for data.
    Fetch(Box<PendingFetch>),
    /// A produce waits for its batches to be committed.
    Produce(Box<PendingProduce>),
    /// It stands in [`Connection::parked`].
    Parked,
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
    /// Its head.
    pub head: RequestHead,
    /// The frame without its size prefix.
    pub frame: Vec<u8>,
}

impl Slot {
    /// Memory that it takes beyond itself.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Slot::Fetch(fetch) => fetch.memory(),
            Slot::Ready(response) => response.memory(),
            Slot::Control(_) | Slot::Held(_) | Slot::Produce(_) | Slot::Parked => 0,
        }
    }
}

//! The state of reading: the reason why a connection's next request does not begin.
//!
//! | state | begins | ends in |
//! |---|---|---|
//! | `Ready` | with the connection | each of the others |
//! | `Unnamed` | the handshake has a client certificate | `Ready`, when its principal is known |
//! | `Intercepted` | the next request has an intercepted API | `Ready`, by the control plane's decision |
//! | `WaitsForSlot` | the next request is for the control plane, and `queued.max.requests` are in work | `OwnsSlot` |
//! | `OwnsSlot` | a slot was freed for the connection | `Ready`, when the request begins or cannot begin |
//! | `Delayed` | a hot-path request is unresolved | `Ready`, when the request is resolved |
//!
//! Memory, quotas, the send buffer and a pending close also stop reading, in each of these states.

use super::slot::Delayed;

/// The reason why a connection's next request does not begin; the module has the transitions.
#[derive(Debug, Default)]
pub enum ReadState {
    /// The next request begins when its frame is complete.
    #[default]
    Ready,
    /// The control plane maps the client's certificate to a principal.
    Unnamed,
    /// The control plane decides on the next frame, which stays in the input buffer.
    Intercepted,
    /// The next request waits for a slot of `queued.max.requests`.
    WaitsForSlot,
    /// The next request has a slot of `queued.max.requests`, and is not intercepted again.
    OwnsSlot,
    /// A hot-path request waits for the control plane. A later request would overtake it.
    Delayed(Box<Delayed>),
}

impl ReadState {
    /// Whether no further request may begin.
    pub fn is_paused(&self) -> bool {
        !matches!(self, Self::Ready | Self::OwnsSlot)
    }

    /// Whether the next request may begin and has no slot yet.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// Changes `Unnamed` to `Ready`. Returns false, without a change, in another state.
    pub fn end_unnamed(&mut self) -> bool {
        matches!(self, Self::Unnamed) && self.end()
    }

    /// Changes `Intercepted` to `Ready`. Returns false, without a change, in another state.
    pub fn end_intercepted(&mut self) -> bool {
        matches!(self, Self::Intercepted) && self.end()
    }

    /// Changes `OwnsSlot` to `Ready`: the caller now owns the slot. Returns false, without a change, in another state.
    pub fn take_slot(&mut self) -> bool {
        matches!(self, Self::OwnsSlot) && self.end()
    }

    /// The parked request.
    pub fn delayed(&self) -> Option<&Delayed> {
        if let Self::Delayed(delayed) = self { Some(delayed) } else { None }
    }

    /// The parked request.
    pub fn delayed_mut(&mut self) -> Option<&mut Delayed> {
        if let Self::Delayed(delayed) = self { Some(delayed) } else { None }
    }

    /// Changes `Delayed` to `Ready` if the parked request meets the condition, and returns the request.
    pub fn take_delayed(&mut self, condition: impl FnOnce(&Delayed) -> bool) -> Option<Box<Delayed>> {
        if !self.delayed().is_some_and(condition) {
            return None;
        }
        match std::mem::take(self) {
            Self::Delayed(delayed) => Some(delayed),
            Self::Ready | Self::Unnamed | Self::Intercepted | Self::WaitsForSlot | Self::OwnsSlot => None,
        }
    }

    fn end(&mut self) -> bool {
        *self = Self::Ready;
        true
    }
}

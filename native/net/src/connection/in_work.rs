//! Queries on the requests of a connection that have no response yet.

use super::{Connection, Request, Slot};

impl Connection {
    /// Whether a request of this connection waits for the control plane's response.
    pub fn control_unanswered(&self) -> bool {
        self.control.is_some()
    }

    /// Numbers of the requests whose fetches wait.
    pub fn waiting_requests(&self) -> Vec<u64> {
        let is_fetch =
            |(at, request): (usize, &Request)| matches!(request.slot, Slot::Fetch(_)).then_some(self.first + at as u64);
        self.slots.iter().enumerate().filter_map(is_fetch).collect()
    }

    /// Whether a request of this connection occupies a slot of `queued.max.requests`.
    pub fn has_control_in_work(&self) -> bool {
        let slot = self.control.and_then(|request| self.slots.get((request - self.first) as usize));
        matches!(slot, Some(Request { slot: Slot::Control(_), .. }))
    }

    /// Whether a request is being executed. A request that waits for data or for other clients is not.
    pub fn is_worked_on(&self) -> bool {
        self.reading.delayed().is_some()
            || self.slots.iter().any(|request| matches!(request.slot, Slot::Control(_) | Slot::Produce(_)))
    }
}

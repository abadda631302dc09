//! The times of a connection's requests: what the control plane notes of one, and those whose answers have left.

use std::sync::Arc;

use super::Connection;
use crate::measures::times::{ControlSteps, RequestTimes};
use crate::scheduling::clock::Clock;

impl Connection {
    /// What the control plane is to note of the request that it gets next.
    pub(super) fn next_steps(&mut self, clock: &Arc<Clock>) -> Arc<ControlSteps> {
        let steps = self.steps.get_or_insert_with(|| Arc::new(ControlSteps::new(clock)));
        steps.reset();
        Arc::clone(steps)
    }

    /// What the control plane notes of the request that it works on.
    pub fn steps(&self) -> Option<&ControlSteps> {
        self.steps.as_deref()
    }

    /// The times of a request that is in work.
    pub fn times_mut(&mut self, request: u64) -> Option<&mut RequestTimes> {
        Some(&mut self.request_mut(request)?.times)
    }

    /// The times of an answer of which the last byte has been written, once.
    pub fn take_sent(&mut self) -> Option<RequestTimes> {
        if !self.has_sent() {
            return None;
        }
        self.timed.pop_front().map(|(_, times)| times)
    }

    /// Whether [`Connection::take_sent`] has something.
    pub fn has_sent(&self) -> bool {
        self.timed.front().is_some_and(|(reaches, _)| *reaches <= self.written)
    }
}

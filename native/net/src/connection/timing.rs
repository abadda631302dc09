//! The times of a connection's requests: recorded by the control plane, and of responses that were sent.

use std::sync::Arc;

use super::Connection;
use crate::measures::times::{ControlSteps, RequestTimes};
use crate::scheduling::clock::Clock;

impl Connection {
    /// The recorder of the control plane's times for its next request.
    pub(super) fn next_steps(&mut self, clock: &Arc<Clock>) -> Arc<ControlSteps> {
        let steps = self.steps.get_or_insert_with(|| Arc::new(ControlSteps::new(clock)));
        steps.reset();
        Arc::clone(steps)
    }

    /// The recorder of the control plane's times for its current request.
    pub fn steps(&self) -> Option<&ControlSteps> {
        self.steps.as_deref()
    }

    /// The times of a request in work.
    pub fn times_mut(&mut self, request: u64) -> Option<&mut RequestTimes> {
        Some(&mut self.request_mut(request)?.times)
    }

    /// Records that a request in work waits from now on.
    pub fn wait(&mut self, request: u64) {
        let now = self.now_ns;
        if let Some(times) = self.times_mut(request) {
            times.wait(now);
        }
    }

    /// The times of a response whose last byte has been written, each once.
    pub fn take_sent(&mut self) -> Option<RequestTimes> {
        if !self.has_sent() {
            return None;
        }
        self.timed.pop_front().map(|(_, times)| times)
    }

    /// Whether [`Connection::take_sent`] returns times.
    pub fn has_sent(&self) -> bool {
        self.timed.front().is_some_and(|(reaches, _)| *reaches <= self.written)
    }
}

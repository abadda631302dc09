//! What becomes of syncs (`flush=group`): requests that waited wake their processors, failures go to the control plane.

use std::path::Path;
use std::sync::Arc;

use super::clock::Clock;
use super::events::{Event, EventQueue};
use super::inboxes::Inboxes;
use pybroker_replica::{FlushListener, Waiter};
use pybroker_storage::LogError;

/// See the module.
#[derive(Debug)]
pub struct FlushOutcomes {
    /// The way to those that waited.
    pub inboxes: Arc<Inboxes>,
    /// The way up.
    pub events: Arc<EventQueue>,
    /// The time of what is said about want.
    pub clock: Arc<Clock>,
}

impl FlushListener for FlushOutcomes {
    fn wake(&self, waiter: Waiter) {
        self.inboxes.wake(waiter);
    }

    fn failed(&self, directory: &Path, error: &LogError) {
        if error.is_exhausted() {
            self.events.exhausted(self.clock.now(), &error.to_string());
        } else {
            let directory = directory.display().to_string();
            self.events.push(Event::LogDirectoryFailed { directory, error: error.to_string() });
        }
    }
}

//! What becomes of syncs (`flush=group`): requests that waited wake their processors, failures go to the control plane.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::data_plane::events::{Event, EventQueue};
use crate::scheduling::clock::Clock;
use crate::scheduling::inboxes::Inboxes;
use pybroker_replica::{FlushListener, Waiter};
use pybroker_storage::LogError;
use pybroker_sys::scheduling;

/// See the module.
#[derive(Debug)]
pub struct FlushOutcomes {
    /// The way to those that waited.
    pub inboxes: Arc<Inboxes>,
    /// The way up.
    pub events: Arc<EventQueue>,
    /// The time of what is said about want.
    pub clock: Arc<Clock>,
    /// How long a thread that syncs runs before others have their turn.
    pub thread_slice: Duration,
}

impl FlushListener for FlushOutcomes {
    fn begun(&self) {
        // Where the system forbids it, the processors have said so.
        let _ = scheduling::set_slice(self.thread_slice);
    }

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

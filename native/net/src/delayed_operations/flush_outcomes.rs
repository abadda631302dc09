//! The results of syncs (`flush=group`): waiting requests are woken, failures are reported to the control plane.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::data_plane::events::{Event, EventQueue};
use crate::scheduling::clock::Clock;
use crate::scheduling::inboxes::Inboxes;
use pybroker_replica::{FlushListener, Waiter};
use pybroker_storage::LogError;
use pybroker_sys::scheduling;

/// Handles the results of syncs.
#[derive(Debug)]
pub struct FlushOutcomes {
    /// To wake the owners of waiting requests.
    pub inboxes: Arc<Inboxes>,
    /// To report to the control plane.
    pub events: Arc<EventQueue>,
    /// The clock of reports about exhausted resources.
    pub clock: Arc<Clock>,
    /// The scheduler slice of a thread that syncs.
    pub thread_slice: Duration,
}

impl FlushListener for FlushOutcomes {
    fn begun(&self) {
        // If the system does not permit it, the processors have reported that.
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

//! The inboxes of all processors, and the wake-up of the owner of a request that waits.

use std::io;
use std::sync::Arc;

use super::connection_number::{CONTROL_PLANE, processor_of};
use super::events::{Event, EventQueue};
use super::inbox::{Inbox, Message};
use pybroker_replica::Waiter;

/// See the module.
#[derive(Debug)]
pub struct Inboxes {
    of_processor: Vec<Inbox>,
    /// Where its own settled appends are reported to the control plane.
    events: Arc<EventQueue>,
}

impl Inboxes {
    /// One inbox for each of `processors`.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new(processors: usize, events: Arc<EventQueue>) -> io::Result<Self> {
        Ok(Self { of_processor: (0..processors).map(|_| Inbox::new()).collect::<io::Result<_>>()?, events })
    }

    /// A processor's own inbox.
    pub fn of(&self, processor: usize) -> &Inbox {
        &self.of_processor[processor]
    }

    /// Posts a message to the processor that owns a connection.
    pub fn post(&self, connection: u64, message: Message) {
        if let Some(inbox) = self.of_processor.get(processor_of(connection)) {
            inbox.post(message);
        }
    }

    /// Posts messages about connections. Processors are woken when all of them lie ready: one that wakes earlier would
    /// take them one by one, and this thread's time with them.
    pub fn post_many(&self, messages: impl Iterator<Item = (u64, Message)>) {
        let mut waiting = 0_u64;
        for (connection, message) in messages {
            let processor = processor_of(connection);
            if let Some(inbox) = self.of_processor.get(processor) {
                inbox.push(message);
                waiting |= 1 << processor;
            }
        }
        while waiting != 0 {
            self.of_processor[waiting.trailing_zeros() as usize].wake();
            waiting &= waiting - 1;
        }
    }

    /// Posts to the processor whose turn it is: the `count`th message of this kind.
    pub fn deal(&self, count: usize, message: Message) {
        self.of_processor[count % self.of_processor.len()].post(message);
    }

    /// Posts a message to every processor.
    pub fn post_to_all(&self, message: impl Fn() -> Message) {
        for inbox in &self.of_processor {
            inbox.post(message());
        }
    }

    /// Wakes the owner of a request that waits, or reports to the control plane that its own append is settled.
    pub fn wake(&self, waiter: Waiter) {
        if waiter.connection == CONTROL_PLANE {
            self.events.push(Event::AppendSettled { ticket: waiter.request });
        } else {
            self.post(waiter.connection, Message::Wake(waiter));
        }
    }
}

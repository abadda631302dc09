//! The inboxes of all processors, and waking the owner of a waiting request.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::connection::connection_number::{CONTROL_PLANE, MOST_PROCESSORS, processor_of};
use crate::data_plane::events::{Event, EventQueue};
use crate::scheduling::inbox::{Inbox, Message};
use pybroker_replica::Waiter;

/// The inboxes of all processors.
#[derive(Debug)]
pub struct Inboxes {
    /// By number of each processor that has ever run: an inbox stays with its processor, whichever thread serves the
    /// processor.
    of_processor: Box<[OnceLock<Inbox>]>,
    /// The first so many processors get new connections.
    dealt_to: AtomicUsize,
    /// The queue for completed appends of the control plane's own.
    events: Arc<EventQueue>,
}

impl Inboxes {
    /// Without inboxes: each processor opens its own.
    pub fn new(events: Arc<EventQueue>) -> Self {
        let of_processor = (0..MOST_PROCESSORS).map(|_| OnceLock::new()).collect();
        Self { of_processor, dealt_to: AtomicUsize::new(0), events }
    }

    /// The inbox of a processor, created on the first call.
    ///
    /// # Errors
    /// When the process has no file descriptor left, or the number is out of range.
    pub fn open(&self, processor: usize) -> io::Result<&Inbox> {
        let slot = self.of_processor.get(processor).ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(inbox) = slot.get() {
            return Ok(inbox);
        }
        let made = Inbox::new()?;
        Ok(slot.get_or_init(|| made))
    }

    /// A processor's inbox.
    pub fn of(&self, processor: usize) -> Option<&Inbox> {
        self.of_processor.get(processor)?.get()
    }

    /// Posts a message to the processor that owns a connection.
    pub fn post(&self, connection: u64, message: Message) {
        self.post_to(processor_of(connection), message);
    }

    /// Posts a message to a processor.
    pub fn post_to(&self, processor: usize, message: Message) {
        if let Some(inbox) = self.of(processor) {
            inbox.post(message);
        }
    }

    /// Posts messages about connections. Wakes the processors after all messages are queued: a processor woken earlier would
    /// take them one by one, and delay this thread.
    pub fn post_many(&self, messages: impl Iterator<Item = (u64, Message)>) {
        let mut waiting = 0_u64;
        for (connection, message) in messages {
            let processor = processor_of(connection);
            if let Some(inbox) = self.of(processor) {
                inbox.push(message);
                waiting |= 1 << processor;
            }
        }
        while waiting != 0 {
            if let Some(inbox) = self.of(waiting.trailing_zeros() as usize) {
                inbox.wake();
            }
            waiting &= waiting - 1;
        }
    }

    /// Posts the `count`th message of its kind, round-robin over the processors.
    pub fn deal(&self, count: usize, message: Message) {
        self.post_to(count % self.dealt_to.load(Ordering::Relaxed).max(1), message);
    }

    /// Assigns new connections to the first `processors`.
    pub fn deal_to(&self, processors: usize) {
        self.dealt_to.store(processors, Ordering::Relaxed);
    }

    /// Posts a message to every processor.
    pub fn post_to_all(&self, message: impl Fn() -> Message) {
        for inbox in self.of_processor.iter().filter_map(OnceLock::get) {
            inbox.post(message());
        }
    }

    /// Wakes the owner of a waiting request, or reports to the control plane that its append is complete.
    pub fn wake(&self, waiter: Waiter) {
        if waiter.connection == CONTROL_PLANE {
            self.events.push(Event::AppendCompleted { ticket: waiter.request });
        } else {
            self.post(waiter.connection, Message::Wake(waiter));
        }
    }
}

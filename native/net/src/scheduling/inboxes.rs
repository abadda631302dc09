//! The inboxes of all processors, and the wake-up of the owner of a request that waits.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::connection::connection_number::{CONTROL_PLANE, MOST_PROCESSORS, processor_of};
use crate::data_plane::events::{Event, EventQueue};
use crate::scheduling::inbox::{Inbox, Message};
use pybroker_replica::Waiter;

/// See the module.
#[derive(Debug)]
pub struct Inboxes {
    /// Of every processor that there has been: an inbox stays with its processor, whichever thread serves that.
    of_processor: Box<[OnceLock<Inbox>]>,
    /// How many processors new connections are dealt to: the first ones.
    dealt_to: AtomicUsize,
    /// Where its own settled appends are reported to the control plane.
    events: Arc<EventQueue>,
}

impl Inboxes {
    /// No inbox: each processor opens its own.
    pub fn new(events: Arc<EventQueue>) -> Self {
        let of_processor = (0..MOST_PROCESSORS).map(|_| OnceLock::new()).collect();
        Self { of_processor, dealt_to: AtomicUsize::new(0), events }
    }

    /// The inbox of a processor, made where there is none yet.
    ///
    /// # Errors
    /// When the process has no file descriptor left, or there may be no such processor.
    pub fn open(&self, processor: usize) -> io::Result<&Inbox> {
        let slot = self.of_processor.get(processor).ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(inbox) = slot.get() {
            return Ok(inbox);
        }
        let made = Inbox::new()?;
        Ok(slot.get_or_init(|| made))
    }

    /// A processor's own inbox.
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

    /// Posts messages about connections. Processors are woken when all of them lie ready: one that wakes earlier would
    /// take them one by one, and this thread's time with them.
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

    /// Posts to the processor whose turn it is: the `count`th message of this kind.
    pub fn deal(&self, count: usize, message: Message) {
        self.post_to(count % self.dealt_to.load(Ordering::Relaxed).max(1), message);
    }

    /// Has new connections dealt to the first `processors`.
    pub fn deal_to(&self, processors: usize) {
        self.dealt_to.store(processors, Ordering::Relaxed);
    }

    /// Posts a message to every processor.
    pub fn post_to_all(&self, message: impl Fn() -> Message) {
        for inbox in self.of_processor.iter().filter_map(OnceLock::get) {
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

//! The open connections, by number: each is owned by one processor, and visible to all.
//!
//! The owner reads, begins requests and polls the socket. Another thread may lock a connection only to respond on it
//! ([`crate::scheduling::cross_thread`]). No thread waits for a connection's lock while it has locked another.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::connection::Connection;
use crate::connection::connection_number::{MOST_PROCESSORS, processor_of};

/// Open connections, in one map for each processor: only its owner writes to it.
#[derive(Debug)]
pub struct OpenConnections {
    of_processor: Vec<RwLock<FxHashMap<u64, Arc<Mutex<Connection>>>>>,
}

impl OpenConnections {
    /// Without connections, for the largest number of processors.
    pub fn new() -> Self {
        Self { of_processor: (0..MOST_PROCESSORS).map(|_| RwLock::default()).collect() }
    }

    /// The connection with this number; `None` if it is not open.
    pub fn get(&self, number: u64) -> Option<Arc<Mutex<Connection>>> {
        self.of_processor.get(processor_of(number))?.read().get(&number).cloned()
    }

    /// Adds a connection.
    pub fn insert(&self, connection: Connection) {
        let number = connection.number;
        if let Some(own) = self.of_processor.get(processor_of(number)) {
            own.write().insert(number, Arc::new(Mutex::new(connection)));
        }
    }

    /// Removes a connection. Its socket closes when the last reference is dropped.
    pub fn remove(&self, number: u64) {
        if let Some(own) = self.of_processor.get(processor_of(number)) {
            own.write().remove(&number);
        }
    }

    /// Numbers of a processor's connections.
    pub fn numbers(&self, processor: usize) -> Vec<u64> {
        self.of_processor[processor].read().keys().copied().collect()
    }

    /// Whether a processor has no connection.
    pub fn is_empty(&self, processor: usize) -> bool {
        self.of_processor[processor].read().is_empty()
    }
}

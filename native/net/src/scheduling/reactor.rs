//! What the processors share: settings, connections and what bounds them, published answers, the hot path's tables.
//!
//! Must not know sockets, frames or what becomes of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::accepting::open_connections::OpenConnections;
use crate::accepting::refusals::Refusals;
use crate::accepting::room::Room;
use crate::data_plane::api_versions::ApiVersionsTable;
use crate::data_plane::events::EventQueue;
use crate::data_plane::settings::Settings;
use crate::delayed_operations::interception::InterceptedApis;
use crate::hot_path::HotPath;
use crate::limits::control_room::ControlRoom;
use crate::limits::request_memory::RequestMemory;
use crate::measures::counters::Counters;
use crate::scheduling::clock::Clock;
use crate::scheduling::inbox::Message;
use crate::scheduling::inboxes::Inboxes;

/// See the module.
#[derive(Debug)]
pub struct Reactor {
    /// The limits in force.
    pub settings: Arc<Settings>,
    /// Deadlines' time.
    pub clock: Arc<Clock>,
    /// The way up.
    pub events: Arc<EventQueue>,
    /// The way to the processor that owns a connection.
    pub inboxes: Arc<Inboxes>,
    /// Room for connections.
    pub room: Arc<Room>,
    /// What Produce and Fetch work with.
    pub hot_path: HotPath,
    /// The answers to ApiVersions as last published.
    pub api_versions: ArcSwap<ApiVersionsTable>,
    /// The APIs whose requests the control plane decides about first.
    pub intercepted: InterceptedApis,
    /// What is counted for metrics.
    pub counters: Counters,
    /// The connections of all processors.
    pub open: OpenConnections,
    /// Control requests that Python has not answered yet, and the connections that wait for room.
    pub control: ControlRoom,
    /// Which connections have had a line when they were closed.
    pub refusals: Refusals,
    /// Memory of requests that are being received.
    pub request_memory: RequestMemory,
    /// Memory of answers that are not written yet, over all connections.
    pub response_memory: AtomicU64,
}

impl Reactor {
    /// A control request has been answered or dropped: whose turn it is gets its room.
    pub fn control_done(&self) {
        if let Some(connection) = self.control.leave() {
            self.inboxes.post(connection, Message::Resume { connection });
        }
    }

    /// Lets the connection that has waited longest for memory try again, if there is some.
    pub fn offer_request_memory(&self) {
        if let Some(connection) = self.request_memory.next() {
            self.inboxes.post(connection, Message::Memory { connection });
        }
    }

    /// Notes that a connection's unread answers take `now` bytes of memory, and took `before`; has its owner make room
    /// where all of them take more than they may.
    pub fn account_answers(&self, connection: u64, before: u64, now: u64) {
        let total = if now >= before {
            self.response_memory.fetch_add(now - before, Ordering::Relaxed) + (now - before)
        } else {
            self.response_memory.fetch_sub(before - now, Ordering::Relaxed) - (before - now)
        };
        if now > before && total > self.settings.queued_response_bytes {
            self.inboxes.post(connection, Message::Shed);
        }
    }
}

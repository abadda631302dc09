//! The state shared by the processors: settings, connections and their limits, published responses, the hot path's tables.
//!
//! Must not know sockets, frames or the outcome of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::accepting::connection_slots::ConnectionSlots;
use crate::accepting::open_connections::OpenConnections;
use crate::accepting::refusals::Refusals;
use crate::data_plane::api_versions::ApiVersionsTable;
use crate::data_plane::events::EventQueue;
use crate::data_plane::settings::Settings;
use crate::delayed_operations::interception::InterceptedApis;
use crate::hot_path::HotPath;
use crate::limits::control_budget::ControlBudget;
use crate::limits::request_memory::RequestMemory;
use crate::measures::counters::Counters;
use crate::scheduling::clock::Clock;
use crate::scheduling::inbox::Message;
use crate::scheduling::inboxes::Inboxes;

/// The state shared by the processors.
#[derive(Debug)]
pub struct Reactor {
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// The clock for deadlines.
    pub clock: Arc<Clock>,
    /// The events to the control plane.
    pub events: Arc<EventQueue>,
    /// The inboxes of the processors.
    pub inboxes: Arc<Inboxes>,
    /// The limits on connections.
    pub capacity: Arc<ConnectionSlots>,
    /// The state of Produce and Fetch.
    pub hot_path: HotPath,
    /// The responses to ApiVersions, as last published.
    pub api_versions: ArcSwap<ApiVersionsTable>,
    /// The APIs whose requests the control plane decides on first.
    pub intercepted: InterceptedApis,
    /// The counters for metrics.
    pub counters: Counters,
    /// The connections of all processors.
    pub open: OpenConnections,
    /// Control requests without a response yet, and the connections that wait for a slot.
    pub control: ControlBudget,
    /// Limits the log lines about closed connections.
    pub refusals: Refusals,
    /// Memory of requests that are being received.
    pub request_memory: RequestMemory,
    /// Memory of unwritten responses over all connections.
    pub response_memory: AtomicU64,
}

impl Reactor {
    /// Frees the slot of a completed or dropped control request, for the connection that has waited longest.
    pub fn control_done(&self) {
        if let Some(connection) = self.control.leave() {
            self.inboxes.post(connection, Message::Resume { connection });
        }
    }

    /// Lets the connection that has waited longest for memory try again, if memory is free.
    pub fn offer_request_memory(&self) {
        if let Some(connection) = self.request_memory.next() {
            self.inboxes.post(connection, Message::Memory { connection });
        }
    }

    /// Replaces `before` by `now` in the memory of unread responses. Requests the owner of the connection to free memory if
    /// all connections exceed the limit.
    pub fn account_responses(&self, connection: u64, before: u64, now: u64) {
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

//! When and to which broker Metadata requests are sent, and when the client returns to its bootstrap servers (KIP-1102).
//!
//! A broker is silent if it delays a response for longer than it may: it may be paused, or cut off. Silent brokers get
//! requests last, and make the client request metadata from another broker.

use std::time::{Duration, Instant};

use super::apis::METADATA;
use super::cluster::NodeId;
use super::connection::Frame;
use super::metadata_request::MetadataRequestState;
use super::{Event, Network, Purpose, Wait};
use crate::error::ClientError;
use pybroker_wire::ErrorCode;
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::metadata::{self, MetadataResponse};

impl<T> Network<T> {
    /// How long a node may be silent before another gets the request: the longest back-off.
    fn patience(&self) -> Duration {
        self.config.retry_backoff_max
    }

    /// The connected node for a request about the cluster; starts a connection if none is connected. Silent nodes are chosen
    /// last, and those with most failures are connected to last.
    pub fn any_ready(&mut self, now: Instant) -> Option<NodeId> {
        let requested = self.metadata_request.requested.map(|(node, _)| node);
        let connected = self.links.iter().filter(|(node, l)| l.is_ready() && Some(**node) != requested);
        let best = connected
            .min_by_key(|(node, l)| (l.connection.is_silent(now), l.connection.in_flight(), **node < 0, **node));
        let found = best.map(|(node, link)| (*node, link.connection.is_silent(now)));
        if let Some((node, false)) = found {
            return Some(node);
        }
        let patience = self.patience();
        let in_vain = |since: Instant| now.saturating_duration_since(since) >= patience;
        if self.links.values().all(|link| link.is_ready() || in_vain(link.began)) {
            self.connect_to_another(now);
        }
        found.map(|(node, _)| node)
    }

    /// Start a connection to a node without one whose back-off is over: a broker, else a bootstrap server.
    fn connect_to_another(&mut self, now: Instant) {
        let mut nodes: Vec<NodeId> = self.cluster.servers.keys().copied().collect();
        let failures = |node: &NodeId| self.backoffs.get(node).map_or(0, |backoff| backoff.failures);
        nodes.sort_unstable_by_key(|node| (failures(node), *node));
        if nodes.is_empty() || self.config.rebootstraps {
            nodes.extend((0..self.config.bootstrap_servers.len()).map(|i| -1 - i as NodeId));
        }
        let rested = |node: &NodeId| self.backoffs.get(node).and_then(|b| b.until).is_none_or(|until| until <= now);
        let free = |node: &NodeId| !self.links.contains_key(node) && rested(node);
        if let Some(node) = nodes.into_iter().find(free) {
            self.connect(node, now);
        }
    }

    /// Request metadata if it is stale or old; returns when the next check is due.
    pub(super) fn refresh_metadata(&mut self, now: Instant, events: &mut Vec<Event<T>>) -> Instant {
        self.suspect_silent(now);
        let old = self.cluster.responded_at.map_or(now, |at| at + self.config.metadata_max_age);
        let due = if self.cluster.stale { now } else { old };
        // The back-off is for repeated requests, not for the first one about a topic.
        let rest = self.metadata_request.rest.filter(|_| !self.cluster.not_requested);
        let due = rest.map_or(due, |rest| due.max(rest));
        // A request without a response is sent to another node.
        let due = self.metadata_request.requested.map_or(due, |(_, since)| due.max(since + self.patience()));
        if due > now {
            return due;
        }
        let since = *self.metadata_request.wanted_since.get_or_insert(now);
        if self.config.rebootstraps && now.saturating_duration_since(since) >= self.config.rebootstrap_trigger {
            self.rebootstrap(now, "metadata.recovery.rebootstrap.trigger.ms is over without metadata", events);
        }
        let Some(node) = self.any_ready(now) else { return now + self.config.reconnect_backoff };
        match self.target(node, METADATA) {
            Ok(target) => {
                (self.cluster.stale, self.cluster.not_requested) = (false, false);
                self.metadata_request.requested = Some((node, now));
                self.metadata_request.rest = Some(now + self.config.retry_backoff);
                let topics: Vec<String> = self.cluster.wanted().into_iter().map(str::to_owned).collect();
                let wait = Wait::of(self.config.request_timeout);
                let create = self.config.allow_auto_create_topics;
                let write = |out: &mut Vec<u8>| {
                    metadata::write_request(out, target.version, create, topics.iter().map(String::as_str));
                };
                self.request(target, Purpose::Metadata, wait, now, write);
                now + self.patience()
            }
            Err(error) => {
                self.drop_link(node, error, now, events);
                now
            }
        }
    }

    /// A silent node may not be a leader any more: request metadata, as often as allowed.
    fn suspect_silent(&mut self, now: Instant) {
        let patience = self.patience();
        let rested = self.metadata_request.suspected.is_none_or(|at| now.saturating_duration_since(at) >= patience);
        if rested && self.links.values().any(|link| link.connection.is_silent(now)) {
            self.metadata_request.suspected = Some(now);
            self.cluster.stale = true;
        }
    }

    pub(super) fn take_metadata(
        &mut self,
        node: NodeId,
        version: i16,
        frame: &Frame,
        now: Instant,
        events: &mut Vec<Event<T>>,
    ) {
        if self.metadata_request.requested.is_some_and(|(requested, _)| requested == node) {
            self.metadata_request.requested = None;
        }
        match MetadataResponse::parse(frame.bytes(), RESPONSE_BODY, version) {
            Ok(MetadataResponse { error: ErrorCode::REBOOTSTRAP_REQUIRED, .. }) if self.config.rebootstraps => {
                self.rebootstrap(now, "the broker answered REBOOTSTRAP_REQUIRED", events);
            }
            Ok(response) => {
                self.cluster.apply(&response, now);
                self.metadata_request.rest = Some(now + self.config.retry_backoff);
                self.metadata_request.wanted_since = None;
                self.leave_bootstrap_servers();
                events.push(Event::Metadata);
            }
            Err(error) => {
                let (server, api) = (self.server(node), METADATA.name);
                let error = ClientError::Malformed { server, api, detail: error.to_string() };
                self.drop_link(node, error, now, events);
            }
        }
    }

    /// Close idle connections to bootstrap servers once the broker ids are known.
    fn leave_bootstrap_servers(&mut self) {
        if self.cluster.servers.is_empty() {
            return;
        }
        let before = self.links.len();
        self.links.retain(|node, link| *node >= 0 || link.connection.in_flight() > 0);
        self.count_ended(before - self.links.len());
    }

    /// Close every connection and start again at the bootstrap servers.
    fn rebootstrap(&mut self, now: Instant, why: &str, events: &mut Vec<Event<T>>) {
        log::info!("{why}: going back to the bootstrap servers {}", self.config.bootstrap_servers.join(","));
        let nodes: Vec<NodeId> = self.links.keys().copied().collect();
        for node in nodes {
            let error = ClientError::Disconnected { server: self.server(node), detail: why.to_owned() };
            self.drop_link(node, error, now, events);
        }
        self.cluster.forget_servers();
        self.backoffs.clear();
        self.metadata_request =
            MetadataRequestState { rest: Some(now + self.config.retry_backoff), ..MetadataRequestState::default() };
    }

    /// Forget the Metadata request to a node whose connection has ended: another node gets it.
    pub(super) fn forget_requested(&mut self, node: NodeId) {
        if self.metadata_request.requested.is_some_and(|(requested, _)| requested == node) {
            self.metadata_request.requested = None;
        }
    }
}

//! A connection, as the acceptor passes it to a processor.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::connection::identity::Authentication;
use crate::transport::Transport;

/// An accepted connection.
#[derive(Debug)]
pub struct Accepted {
    /// The socket, plaintext or TLS.
    pub transport: Transport,
    /// The listener's name.
    pub listener: Arc<str>,
    /// Whether every request goes to the control plane.
    pub control_only: bool,
    /// The state of its authentication.
    pub authentication: Authentication,
    /// The largest frame before authentication: `sasl.server.max.receive.size`.
    pub unauthenticated_max_bytes: usize,
    /// How long it may take to authenticate, in ms from its accept.
    pub authentication_timeout_ms: u64,
    /// How long its handshake may take, in ms; `None` without TLS.
    pub handshake_timeout_ms: Option<u64>,
    /// The local address of the connection.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
}

impl Accepted {
    /// The largest frame in the current state; `max` is the largest after authentication.
    pub fn max_frame_bytes(&self, max: usize) -> usize {
        match self.authentication {
            Authentication::Awaited | Authentication::Tokens => max.min(self.unauthenticated_max_bytes),
            Authentication::Proved { .. } => max,
        }
    }

    /// The configuration key of this limit.
    pub fn max_frame_key(&self) -> &'static str {
        match self.authentication {
            Authentication::Awaited | Authentication::Tokens => {
                "sasl.server.max.receive.size, as the client has not authenticated,"
            }
            Authentication::Proved { .. } => "socket.request.max.bytes",
        }
    }
}

//! A connection as the acceptor hands it to a processor.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::connection::identity::Authentication;
use crate::transport::Transport;

/// See the module.
#[derive(Debug)]
pub struct Accepted {
    /// How its bytes come and go.
    pub transport: Transport,
    /// The listener's name.
    pub listener: Arc<str>,
    /// Whether the control plane answers every request.
    pub control_only: bool,
    /// Who its peer is, as far as that is known.
    pub authentication: Authentication,
    /// The largest frame before the peer is known: `sasl.server.max.receive.size`.
    pub unauthenticated_max_bytes: usize,
    /// How long it may take to authenticate, in ms from when it was accepted.
    pub authentication_timeout_ms: u64,
    /// How long its handshake may take, in ms; `None` without TLS.
    pub handshake_timeout_ms: Option<u64>,
    /// The address dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
}

impl Accepted {
    /// The largest frame that it may send now, where `max` is the largest of all.
    pub fn max_frame_bytes(&self, max: usize) -> usize {
        match self.authentication {
            Authentication::Awaited | Authentication::Tokens => max.min(self.unauthenticated_max_bytes),
            Authentication::Proved { .. } => max,
        }
    }

    /// The setting that bounds its frames now.
    pub fn max_frame_key(&self) -> &'static str {
        match self.authentication {
            Authentication::Awaited | Authentication::Tokens => {
                "sasl.server.max.receive.size, as the client has not authenticated,"
            }
            Authentication::Proved { .. } => "socket.request.max.bytes",
        }
    }
}

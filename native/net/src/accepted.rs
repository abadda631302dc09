//! A connection as the acceptor hands it to a processor.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Accepted {
    /// The socket, non-blocking.
    pub stream: TcpStream,
    /// The listener's name.
    pub listener: Arc<str>,
    /// The address dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
}

//! One listener: it binds its address, and frees the address when it is closed.
//!
//! Must not know which thread accepts its connections, nor how they are handled.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::connection::identity::Authentication;
use crate::data_plane::settings::{ListenerSettings, ListenerTls, Settings};

/// Why a listener could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The host has no address.
    #[error("listener {name}: {host}:{port} has no address: {source}")]
    Resolve {
        /// The listener.
        name: String,
        /// The requested host.
        host: String,
        /// The requested port.
        port: u16,
        /// The resolver's error.
        source: io::Error,
    },
    /// The system rejected the address.
    #[error("listener {name}: cannot listen on {host}:{port}: {source}")]
    Bind {
        /// The listener.
        name: String,
        /// The requested host.
        host: String,
        /// The requested port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The congestion control is not available.
    #[error("listener {name}: the congestion control {algorithm} is not available: {source}")]
    Congestion {
        /// The listener.
        name: String,
        /// The requested algorithm.
        algorithm: String,
        /// The system's error.
        source: io::Error,
    },
    /// The data plane is shutting down.
    #[error("the data plane no longer accepts connections")]
    Stopped,
}

/// A bound listener.
#[derive(Debug)]
pub struct Listener {
    pub socket: TcpListener,
    /// The connections of this listener share this `Arc`: another listener of the same name has another one.
    pub name: Arc<str>,
    pub control_only: bool,
    pub authentication: Authentication,
    pub unauthenticated_max_bytes: usize,
    pub authentication_timeout_ms: u64,
    /// The TLS settings of new connections.
    pub tls: ArcSwapOption<ListenerTls>,
    is_closed: AtomicBool,
}

impl ListenerSettings {
    /// The error for an address that the system rejected.
    pub fn cannot_bind(&self, source: io::Error) -> ListenError {
        ListenError::Bind { name: self.name.clone(), host: self.host.clone(), port: self.port, source }
    }
}

impl Listener {
    /// Binds a listener; returns the bound port too.
    pub fn bind(sizes: &Settings, settings: &ListenerSettings) -> Result<(Self, u16), ListenError> {
        let cannot_bind = |source| settings.cannot_bind(source);
        let address = resolve(&settings.host, settings.port).map_err(|source| ListenError::Resolve {
            name: settings.name.clone(),
            host: settings.host.clone(),
            port: settings.port,
            source,
        })?;
        let socket =
            Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(cannot_bind)?;
        socket.set_reuse_address(true).map_err(cannot_bind)?;
        set_up(sizes, &socket, settings)?;
        socket.bind(&address.into()).map_err(cannot_bind)?;
        socket.listen(settings.backlog).map_err(cannot_bind)?;
        socket.set_nonblocking(true).map_err(cannot_bind)?;
        let socket: TcpListener = socket.into();
        let port = socket.local_addr().map_err(cannot_bind)?.port();
        let listener = Self {
            socket,
            name: settings.name.as_str().into(),
            control_only: settings.control_only,
            authentication: Authentication::of_listener(settings.identity.as_ref()),
            unauthenticated_max_bytes: settings.unauthenticated_max_bytes,
            authentication_timeout_ms: settings.authentication_timeout_ms,
            tls: ArcSwapOption::from_pointee(settings.tls.clone()),
            is_closed: AtomicBool::new(false),
        };
        Ok((listener, port))
    }

    /// Frees the address at once, even while the acceptor uses the socket; clients in the system's backlog are refused.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let _ = SockRef::from(&self.socket).shutdown(std::net::Shutdown::Both);
    }

    /// Whether the listener was closed. The acceptor checks this after it has passed on a connection.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

/// Buffers and congestion control are set on the listening socket: accepted connections inherit them.
fn set_up(sizes: &Settings, socket: &Socket, settings: &ListenerSettings) -> Result<(), ListenError> {
    if let Ok(bytes) = usize::try_from(sizes.socket_send_buffer_bytes) {
        socket.set_send_buffer_size(bytes).map_err(|source| settings.cannot_bind(source))?;
    }
    if let Ok(bytes) = usize::try_from(sizes.socket_receive_buffer_bytes) {
        socket.set_recv_buffer_size(bytes).map_err(|source| settings.cannot_bind(source))?;
    }
    if let Some(algorithm) = &settings.congestion_control {
        rustix::net::sockopt::set_tcp_congestion(socket.as_fd(), algorithm).map_err(|error| {
            ListenError::Congestion { name: settings.name.clone(), algorithm: algorithm.clone(), source: error.into() }
        })?;
    }
    Ok(())
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let mut addresses = (host, port).to_socket_addrs()?;
    addresses.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name resolves to nothing"))
}

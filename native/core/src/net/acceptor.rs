//! The acceptor: one thread that listens, sets the socket up and hands it to the next processor.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::epoll;
use socket2::{Domain, Protocol, Socket, Type};

use super::connection::Accepted;
use super::data_plane::Shared;
use super::events::Level;
use super::inbox::{Message, new_eventfd, signal};
use super::settings::ListenerSettings;

/// How long the acceptor stands back when the process has run out of file descriptors.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);
/// The epoll token of the wake-up; listeners count from zero.
const WAKE: u64 = u64::MAX;

/// Why a listener could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The host has no address.
    #[error("listener {name}: {host}:{port} has no address: {source}")]
    Resolve {
        /// The listener.
        name: String,
        /// The host asked for.
        host: String,
        /// The port asked for.
        port: u16,
        /// The resolver's error.
        source: io::Error,
    },
    /// The system refused.
    #[error("listener {name}: cannot listen on {host}:{port}: {source}")]
    Bind {
        /// The listener.
        name: String,
        /// The host asked for.
        host: String,
        /// The port asked for.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The congestion control is not available.
    #[error("listener {name}: the congestion control {algorithm} is not available: {source}")]
    Congestion {
        /// The listener.
        name: String,
        /// The algorithm asked for.
        algorithm: String,
        /// The system's error.
        source: io::Error,
    },
    /// The data plane is shutting down.
    #[error("the data plane no longer accepts connections")]
    Stopped,
}

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    name: Arc<str>,
}

#[derive(Debug)]
struct State {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    wake: OwnedFd,
    stop: AtomicBool,
    listeners: Mutex<Vec<Arc<Listener>>>,
}

/// The thread and its listeners.
#[derive(Debug)]
pub struct Acceptor {
    state: Arc<State>,
    thread: JoinHandle<()>,
}

impl Acceptor {
    /// Starts the thread.
    pub fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = new_eventfd()?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let listeners = Mutex::new(Vec::new());
        let state = Arc::new(State { shared, epoll, wake, stop: AtomicBool::new(false), listeners });
        let of_thread = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("acceptor".into()).spawn(move || of_thread.run())?;
        Ok(Self { state, thread })
    }

    /// Binds a listener; the port that it got.
    pub fn listen(&self, listener: &ListenerSettings) -> Result<u16, ListenError> {
        let (name, host, port) = (&listener.name, &listener.host, listener.port);
        let bind = |source| ListenError::Bind { name: name.clone(), host: host.clone(), port, source };
        let address = resolve(host, port).map_err(|source| ListenError::Resolve {
            name: name.clone(),
            host: host.clone(),
            port,
            source,
        })?;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(bind)?;
        socket.set_reuse_address(true).map_err(bind)?;
        self.set_up(&socket, listener)?;
        socket.bind(&address.into()).map_err(bind)?;
        socket.listen(listener.backlog).map_err(bind)?;
        socket.set_nonblocking(true).map_err(bind)?;
        let socket: TcpListener = socket.into();
        let port = socket.local_addr().map_err(bind)?.port();
        let mut listeners = self.state.listeners.lock();
        let token = epoll::EventData::new_u64(listeners.len() as u64);
        epoll::add(&self.state.epoll, &socket, token, epoll::EventFlags::IN).map_err(|error| bind(error.into()))?;
        listeners.push(Arc::new(Listener { socket, name: name.as_str().into() }));
        Ok(port)
    }

    /// Buffers and congestion control are set on the listening socket: accepted connections inherit them.
    fn set_up(&self, socket: &Socket, listener: &ListenerSettings) -> Result<(), ListenError> {
        let settings = &self.state.shared.settings;
        let bind = |source| ListenError::Bind {
            name: listener.name.clone(),
            host: listener.host.clone(),
            port: listener.port,
            source,
        };
        if let Ok(bytes) = usize::try_from(settings.socket_send_buffer_bytes) {
            socket.set_send_buffer_size(bytes).map_err(bind)?;
        }
        if let Ok(bytes) = usize::try_from(settings.socket_receive_buffer_bytes) {
            socket.set_recv_buffer_size(bytes).map_err(bind)?;
        }
        if let Some(algorithm) = &listener.congestion_control {
            rustix::net::sockopt::set_tcp_congestion(socket.as_fd(), algorithm).map_err(|error| {
                ListenError::Congestion {
                    name: listener.name.clone(),
                    algorithm: algorithm.clone(),
                    source: error.into(),
                }
            })?;
        }
        Ok(())
    }

    /// Closes the listeners and ends the thread.
    pub fn stop(self) {
        self.state.stop.store(true, Ordering::Release);
        signal(&self.state.wake);
        let _ = self.thread.join();
    }
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let mut addresses = (host, port).to_socket_addrs()?;
    addresses.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name resolves to nothing"))
}

impl State {
    fn run(&self) {
        let mut events = Vec::with_capacity(16);
        let mut count = 0;
        while !self.stop.load(Ordering::Acquire) {
            events.clear();
            if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None).is_err() {
                continue;
            }
            for event in &events {
                let token = event.data.u64();
                let listener = usize::try_from(token).ok().and_then(|at| self.listeners.lock().get(at).cloned());
                if let Some(listener) = listener {
                    self.accept_all(&listener, &mut count);
                }
            }
        }
    }

    fn accept_all(&self, listener: &Listener, count: &mut usize) {
        loop {
            match listener.socket.accept() {
                Ok((stream, peer)) => self.place(stream, peer, listener, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // A connection that was reset in the queue is nothing; a process without file descriptors is.
                    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
                    {
                        self.shared.events.line(Level::Error, format!("cannot accept connections: {error}"));
                        std::thread::sleep(OUT_OF_FILES_PAUSE);
                    }
                    return;
                }
            }
        }
    }

    fn place(&self, stream: TcpStream, peer: SocketAddr, listener: &Listener, count: &mut usize) {
        let open = self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let max = self.shared.settings.max_connections;
        if open >= max {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            let text = format!("connection from {peer} refused: max.connections is {max}");
            self.shared.events.line(Level::Warning, text);
            return;
        }
        let set_up = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
        let (Ok(()), Ok(local)) = (set_up, stream.local_addr()) else {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        let accepted = Accepted { stream, listener: Arc::clone(&listener.name), local, peer };
        self.shared.inboxes[*count % self.shared.inboxes.len()].post(Message::Accept(accepted));
        *count += 1;
    }
}

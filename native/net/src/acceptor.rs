//! The acceptor: one thread that listens, sets the socket up and hands it to the next processor.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustix::event::{Timespec, epoll};
use socket2::{Domain, Protocol, Socket, Type};

use super::accepted::Accepted;
use super::clock::Clock;
use super::events::{EventQueue, Level};
use super::identity::Authentication;
use super::inbox::Message;
use super::inboxes::Inboxes;
use super::room::Room;
use super::settings::{ListenerSettings, ListenerTls, Settings};
use super::transport::Transport;

/// How long the acceptor stands back when descriptors or memory have run out, unless a connection closes before.
const EXHAUSTED_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How often a line says that connections are not accepted, or accepted again.
const SAY_EVERY_MS: u64 = 60_000;
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
    control_only: bool,
    authentication: Authentication,
    unauthenticated_max_bytes: usize,
    authentication_timeout_ms: u64,
    /// How its connections are encrypted from now on.
    tls: ArcSwapOption<ListenerTls>,
}

/// What the acceptor works with.
#[derive(Debug)]
pub struct Placing {
    /// The limits in force.
    pub settings: Arc<Settings>,
    /// The time of what is said.
    pub clock: Arc<Clock>,
    /// The way up.
    pub events: Arc<EventQueue>,
    /// The processors that connections are dealt to.
    pub inboxes: Arc<Inboxes>,
    /// Room for connections.
    pub room: Arc<Room>,
}

#[derive(Debug)]
struct State {
    placing: Placing,
    epoll: OwnedFd,
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
    pub fn start(placing: Placing) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, placing.room.fd(), epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let listeners = Mutex::new(Vec::new());
        let state = Arc::new(State { placing, epoll, stop: AtomicBool::new(false), listeners });
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
        listeners.push(Arc::new(Listener {
            socket,
            name: name.as_str().into(),
            control_only: listener.control_only,
            authentication: Authentication::of_listener(listener.identity.as_ref()),
            unauthenticated_max_bytes: listener.unauthenticated_max_bytes,
            authentication_timeout_ms: listener.authentication_timeout_ms,
            tls: ArcSwapOption::from_pointee(listener.tls.clone()),
        }));
        Ok(port)
    }

    /// Changes how connections that come to an encrypted listener from now on are encrypted; whether there is such a one.
    pub fn set_tls(&self, name: &str, tls: &ListenerTls) -> bool {
        let listeners = self.state.listeners.lock();
        let encrypted = |it: &&Arc<Listener>| &*it.name == name && it.tls.load().is_some();
        let found = listeners.iter().find(encrypted);
        if let Some(listener) = found {
            listener.tls.store(Some(Arc::new(tls.clone())));
        }
        found.is_some()
    }

    /// Buffers and congestion control are set on the listening socket: accepted connections inherit them.
    fn set_up(&self, socket: &Socket, listener: &ListenerSettings) -> Result<(), ListenError> {
        let settings = &self.state.placing.settings;
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
        self.state.placing.room.wake();
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
        let (mut count, mut hold, mut said) = (0, None, Said::default());
        while !self.stop.load(Ordering::Acquire) {
            events.clear();
            let timeout = matches!(hold, Some(Hold::Exhausted)).then_some(EXHAUSTED_PAUSE);
            if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()).is_err() {
                continue;
            }
            if events.iter().any(|event| event.data.u64() == WAKE) {
                self.placing.room.woken();
            }
            if hold.take().is_some() {
                // Something may have closed, or the pause is over: the listeners say in the next round who waits.
                self.watch(epoll::EventFlags::IN);
                continue;
            }
            let tokens = events.iter().map(|event| event.data.u64()).filter(|token| *token != WAKE);
            for listener in tokens.filter_map(|token| self.listener(token)) {
                hold = self.accept_all(&listener, &mut count);
                if hold.is_some() {
                    break;
                }
            }
            self.hold(&mut hold, &mut said);
        }
    }

    fn listener(&self, token: u64) -> Option<Arc<Listener>> {
        usize::try_from(token).ok().and_then(|at| self.listeners.lock().get(at).cloned())
    }

    /// Leaves those who want to connect in the system's queue, as Kafka's acceptor does, until there may be room.
    fn hold(&self, hold: &mut Option<Hold>, said: &mut Said) {
        let now = self.placing.clock.now();
        let Some(why) = hold else {
            if said.end(now) {
                self.placing.events.line(Level::Info, "connections are accepted again".to_owned());
            }
            return;
        };
        self.watch(epoll::EventFlags::empty());
        if *why == Hold::Full {
            self.placing.room.want();
            let settings = &self.placing.settings;
            if self.placing.room.taken() < settings.max_connections {
                self.placing.room.wake();
            }
            if said.begin(now) {
                let (max, reason) = (settings.max_connections, &settings.max_connections_reason);
                let text = format!("{max} connections are open ({reason}): no more are accepted until one closes");
                self.placing.events.line(Level::Warning, text);
            }
        }
    }

    fn watch(&self, interest: epoll::EventFlags) {
        for (token, listener) in self.listeners.lock().iter().enumerate() {
            let _ = epoll::modify(&self.epoll, &listener.socket, epoll::EventData::new_u64(token as u64), interest);
        }
    }

    /// Accepts until nobody waits, or there is no room.
    fn accept_all(&self, listener: &Listener, count: &mut usize) -> Option<Hold> {
        let room = &self.placing.room;
        loop {
            if !room.take(self.placing.settings.max_connections) {
                return Some(Hold::Full);
            }
            match listener.socket.accept() {
                Ok((stream, peer)) => self.place(stream, peer, listener, count),
                Err(error) => {
                    room.give_back();
                    match error.raw_os_error() {
                        // A connection that was reset in the queue is nothing; a process without file descriptors is.
                        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                            let what = format!("listener {}: accepting a connection: {error}", listener.name);
                            self.placing.events.exhausted(self.placing.clock.now(), &what);
                            return Some(Hold::Exhausted);
                        }
                        Some(libc::EINTR | libc::ECONNABORTED) => {}
                        _ => return None,
                    }
                }
            }
        }
    }

    fn place(&self, stream: TcpStream, peer: SocketAddr, listener: &Listener, count: &mut usize) {
        let local = stream.local_addr();
        let tls = listener.tls.load();
        let transport = match &*tls {
            Some(tls) => Transport::tls_server(stream, &tls.tls),
            None => Transport::plaintext(stream),
        };
        let (Ok(transport), Ok(local)) = (transport, local) else {
            self.placing.room.give_back();
            return;
        };
        let accepted = Accepted {
            transport,
            listener: Arc::clone(&listener.name),
            control_only: listener.control_only,
            authentication: listener.authentication.clone(),
            unauthenticated_max_bytes: listener.unauthenticated_max_bytes,
            authentication_timeout_ms: listener.authentication_timeout_ms,
            handshake_timeout_ms: tls.as_ref().map(|tls| tls.handshake_timeout_ms),
            local,
            peer,
        };
        self.placing.inboxes.deal(*count, Message::Accept(accepted));
        *count += 1;
    }
}

/// Why nobody is accepted for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// As many connections are open as may be.
    Full,
    /// The process or the system has no descriptor or no memory to give.
    Exhausted,
}

/// When the limit was last said to hold, in milliseconds of the data plane's clock: connections that come and go at the limit
/// are no news each time.
#[derive(Debug, Default)]
struct Said {
    holds: bool,
    next: u64,
}

impl Said {
    /// The limit holds: whether to say so.
    fn begin(&mut self, now: u64) -> bool {
        let due = !self.holds && now >= self.next;
        if due {
            (self.holds, self.next) = (true, now + SAY_EVERY_MS);
        }
        due
    }

    /// It does not: whether to say so.
    fn end(&mut self, now: u64) -> bool {
        let due = self.holds && now >= self.next;
        if due {
            (self.holds, self.next) = (false, now + SAY_EVERY_MS);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_holds_again_and_again_is_said_once_a_minute() {
        let mut said = Said::default();
        let lines: Vec<bool> =
            (0..200).map(|second| said.begin(second * 1000) || said.end(second * 1000 + 1)).collect();
        assert_eq!(lines.iter().filter(|line| **line).count(), 4, "at 0, 60, 120 and 180 s");
        assert!(lines[0] && !lines[1]);
    }
}

//! The acceptor: one thread that listens, sets up sockets and passes each to the next processor.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rustix::event::{Timespec, epoll};

use crate::accepting::accepted::Accepted;
use crate::accepting::connection_slots::{Admission, ConnectionSlots, Entry};
use crate::accepting::listener::{ListenError, Listener};
use crate::data_plane::events::{EventQueue, Level};
use crate::data_plane::settings::{ListenerSettings, ListenerTls, Settings};
use crate::scheduling::clock::Clock;
use crate::scheduling::inbox::Message;
use crate::scheduling::inboxes::Inboxes;
use crate::transport::Transport;

/// How long the acceptor pauses when file descriptors or memory are exhausted, unless a connection closes before.
const EXHAUSTED_PAUSE_MS: u64 = 100;
/// Shortest time between two log lines about a connection limit that applies or ends.
const REPORT_EVERY_MS: u64 = 60_000;
/// The epoll token of the wake-up; listeners count from zero.
const WAKE: u64 = u64::MAX;

/// The state of the data plane that the acceptor uses.
#[derive(Debug)]
pub struct Placing {
    /// The limits in force.
    pub settings: Arc<Settings>,
    /// The clock for log lines and limits.
    pub clock: Arc<Clock>,
    /// The events to the control plane.
    pub events: Arc<EventQueue>,
    /// The processors that get the connections.
    pub inboxes: Arc<Inboxes>,
    /// The limits on connections.
    pub capacity: Arc<ConnectionSlots>,
}

#[derive(Debug)]
struct State {
    placing: Placing,
    epoll: OwnedFd,
    stop: AtomicBool,
    /// By epoll token; the slot of a closed listener is reused.
    listeners: Mutex<Vec<Option<Arc<Listener>>>>,
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
        epoll::add(&epoll, placing.capacity.fd(), epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let listeners = Mutex::new(Vec::new());
        let state = Arc::new(State { placing, epoll, stop: AtomicBool::new(false), listeners });
        let of_thread = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("acceptor".into()).spawn(move || of_thread.run())?;
        Ok(Self { state, thread })
    }

    /// Binds a listener; returns the bound port.
    pub fn listen(&self, settings: &ListenerSettings) -> Result<u16, ListenError> {
        let (listener, port) = Listener::bind(&self.state.placing.settings, settings)?;
        let mut listeners = self.state.listeners.lock();
        let at = listeners.iter().position(Option::is_none).unwrap_or(listeners.len());
        let token = epoll::EventData::new_u64(at as u64);
        epoll::add(&self.state.epoll, &listener.socket, token, epoll::EventFlags::IN)
            .map_err(|error| settings.cannot_bind(error.into()))?;
        if at == listeners.len() {
            listeners.push(None);
        }
        listeners[at] = Some(Arc::new(listener));
        Ok(port)
    }

    /// Closes a listener and frees its address. Returns the name that its connections share, `None` if there is no such
    /// listener.
    pub fn unlisten(&self, name: &str) -> Option<Arc<str>> {
        let mut listeners = self.state.listeners.lock();
        let at = listeners.iter().position(|it| it.as_ref().is_some_and(|it| &*it.name == name))?;
        let listener = listeners[at].take()?;
        let _ = epoll::delete(&self.state.epoll, &listener.socket);
        listener.close();
        Some(Arc::clone(&listener.name))
    }

    /// Changes the TLS settings for new connections of an encrypted listener. Returns whether the listener exists and is
    /// encrypted.
    pub fn set_tls(&self, name: &str, tls: &ListenerTls) -> bool {
        let listeners = self.state.listeners.lock();
        let encrypted = |it: &&Arc<Listener>| &*it.name == name && it.tls.load().is_some();
        let found = listeners.iter().flatten().find(encrypted);
        if let Some(listener) = found {
            listener.tls.store(Some(Arc::new(tls.clone())));
        }
        found.is_some()
    }

    /// Closes the listeners and ends the thread.
    pub fn stop(self) {
        self.state.stop.store(true, Ordering::Release);
        self.state.placing.capacity.wake();
        let _ = self.thread.join();
    }
}

impl State {
    fn run(&self) {
        let mut events = Vec::with_capacity(16);
        let (mut count, mut held, mut delayed) = (0, Held::default(), Delayed::default());
        while !self.stop.load(Ordering::Acquire) {
            events.clear();
            let timeout = timeout(self.placing.clock.now(), [held.until, delayed.until]);
            if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()).is_err() {
                continue;
            }
            let is_woken = events.iter().any(|event| event.data.u64() == WAKE);
            if is_woken {
                self.placing.capacity.woken();
            }
            let now = self.placing.clock.now();
            delayed.close(now);
            if held.is_over(now, is_woken) {
                // A connection may have closed, or the pause is over: the next round finds the listeners with waiting
                // clients.
                self.watch_all(epoll::EventFlags::IN);
                continue;
            }
            let tokens = events.iter().map(|event| event.data.u64()).filter(|token| *token != WAKE);
            for token in tokens.collect::<Vec<_>>() {
                let Some(listener) = self.listener(token) else { continue };
                if let Some(hold) =
                    self.accept_all(&listener, &mut count, &mut held.reported_of_addresses, &mut delayed)
                {
                    self.hold(hold, token, &listener, &mut held);
                }
            }
            self.report_again(&mut held);
        }
    }

    fn listener(&self, token: u64) -> Option<Arc<Listener>> {
        usize::try_from(token).ok().and_then(|at| self.listeners.lock().get(at).cloned().flatten())
    }

    /// Leaves waiting clients in the system's backlog, as Kafka's acceptor does, until they may be accepted.
    fn hold(&self, hold: Hold, token: u64, listener: &Listener, held: &mut Held) {
        let now = self.placing.clock.now();
        match hold {
            Hold::Exhausted => {
                held.wait_until(now + EXHAUSTED_PAUSE_MS);
                self.watch_all(epoll::EventFlags::empty());
            }
            Hold::Later(wait) => {
                held.wait_until(now + wait);
                self.watch(token, epoll::EventFlags::empty());
            }
            Hold::Full(why) => {
                held.is_full = true;
                self.watch(token, epoll::EventFlags::empty());
                self.placing.capacity.want();
                if !matches!(self.placing.capacity.admission(&listener.name, now), Admission::Full(_)) {
                    self.placing.capacity.wake();
                }
                if held.reported.begin(now) {
                    let text = format!("{why}: no more are accepted until one closes");
                    self.placing.events.line(Level::Warning, text);
                }
            }
        }
    }

    /// Logs that a limit does not apply any more.
    fn report_again(&self, held: &mut Held) {
        if !held.is_full && held.reported.end(self.placing.clock.now()) {
            self.placing.events.line(Level::Info, "connections are accepted again".to_owned());
        }
    }

    fn watch_all(&self, interest: epoll::EventFlags) {
        let count = self.listeners.lock().len() as u64;
        for token in 0..count {
            self.watch(token, interest);
        }
    }

    fn watch(&self, token: u64, interest: epoll::EventFlags) {
        if let Some(listener) = self.listener(token) {
            let _ = epoll::modify(&self.epoll, &listener.socket, epoll::EventData::new_u64(token), interest);
        }
    }

    /// Accepts until the backlog is empty, or no further connection is allowed.
    fn accept_all(
        &self,
        listener: &Listener,
        count: &mut usize,
        reported: &mut Reported,
        delayed: &mut Delayed,
    ) -> Option<Hold> {
        let capacity = &self.placing.capacity;
        loop {
            let now = self.placing.clock.now();
            match capacity.admission(&listener.name, now) {
                Admission::Now => {}
                Admission::Full(why) => return Some(Hold::Full(why)),
                Admission::Later(wait) => return Some(Hold::Later(wait)),
            }
            match listener.socket.accept() {
                Ok((stream, peer)) => match capacity.enter(&listener.name, peer.ip(), now) {
                    Entry::Taken => self.place(stream, peer, listener, count),
                    refused => self.refuse(stream, peer, refused, reported, delayed),
                },
                Err(error) => {
                    match error.raw_os_error() {
                        // A connection that was reset in the backlog is ignored; exhausted file descriptors are not.
                        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                            let what = format!("listener {}: accepting a connection: {error}", listener.name);
                            self.placing.events.exhausted(now, &what);
                            return Some(Hold::Exhausted);
                        }
                        Some(libc::EINTR | libc::ECONNABORTED) => {}
                        _ => return None,
                    }
                }
            }
        }
    }

    /// Closes a connection whose address is over a limit: at once if it has too many connections, after a delay if it
    /// exceeds its rate, so that a client in a reconnect loop waits (KIP-612).
    fn refuse(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        refused: Entry,
        reported: &mut Reported,
        delayed: &mut Delayed,
    ) {
        let (now, address) = (self.placing.clock.now(), peer.ip());
        let why = match refused {
            Entry::TooFast(wait) => {
                delayed.keep(stream, now + wait, self.placing.capacity.limits().most_delayed);
                "its connections come faster than connection_creation_rate allows".to_owned()
            }
            Entry::TooMany(max) => format!("it has the {max} connections that max.connections.per.ip allows"),
            Entry::Taken => return,
        };
        if reported.news(now) {
            let text = format!("a connection from {address} is closed: {why}");
            self.placing.events.line(Level::Info, text);
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
            self.placing.capacity.give_back(&listener.name, peer.ip());
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
        if listener.is_closed() {
            // The processors may have closed the listener's connections before this connection reached one.
            self.placing.inboxes.post_to_all(|| Message::CloseListener(Arc::clone(&listener.name)));
        }
    }
}

/// The reason why a listener accepts no connections for a while.
#[derive(Debug)]
enum Hold {
    /// The limit on open connections is reached, by this limit (for the log).
    Full(String),
    /// The rate limit is exceeded, for so many milliseconds.
    Later(u64),
    /// The process or the system has no file descriptor or memory left, at any listener.
    Exhausted,
}

/// The listeners that are not polled.
#[derive(Debug, Default)]
struct Held {
    /// Whether a listener waits for a connection to close.
    is_full: bool,
    /// When the first of the other listeners is polled again.
    until: Option<u64>,
    reported: Reported,
    reported_of_addresses: Reported,
}

impl Held {
    fn wait_until(&mut self, time: u64) {
        self.until = Some(self.until.map_or(time, |until| until.min(time)));
    }

    /// Whether to poll the listeners again. Those that still may not accept are paused again.
    fn is_over(&mut self, now: u64, is_woken: bool) -> bool {
        let over = is_woken || self.until.is_some_and(|until| now >= until);
        if over {
            (self.is_full, self.until) = (false, None);
        }
        over
    }
}

/// Sockets that are closed after a delay.
#[derive(Debug, Default)]
struct Delayed {
    sockets: Vec<(u64, TcpStream)>,
    /// When the first socket is closed.
    until: Option<u64>,
}

impl Delayed {
    /// Keeps a socket until `until`; closes it at once if `most` are kept.
    fn keep(&mut self, socket: TcpStream, until: u64, most: usize) {
        if self.sockets.len() < most {
            self.sockets.push((until, socket));
            self.until = Some(self.until.map_or(until, |first| first.min(until)));
        }
    }

    fn close(&mut self, now: u64) {
        if self.until.is_some_and(|until| now >= until) {
            self.sockets.retain(|(until, _)| now < *until);
            self.until = self.sockets.iter().map(|(until, _)| *until).min();
        }
    }
}

/// The time until the first of these times; `None` without one.
fn timeout(now: u64, times: [Option<u64>; 2]) -> Option<Timespec> {
    let first = times.into_iter().flatten().min()?;
    let wait = first.saturating_sub(now);
    Some(Timespec { tv_sec: (wait / 1000) as i64, tv_nsec: (wait % 1000 * 1_000_000) as i64 })
}

/// When the limit was last logged, in milliseconds of the data plane's clock: a limit that is reached again and again is not
/// logged each time.
#[derive(Debug, Default)]
struct Reported {
    holds: bool,
    next: u64,
}

impl Reported {
    /// The limit applies: returns whether to log it.
    fn begin(&mut self, now: u64) -> bool {
        let due = !self.holds && now >= self.next;
        if due {
            (self.holds, self.next) = (true, now + REPORT_EVERY_MS);
        }
        due
    }

    /// An event: returns whether to log it.
    fn news(&mut self, now: u64) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + REPORT_EVERY_MS;
        }
        due
    }

    /// The limit does not apply: returns whether to log it.
    fn end(&mut self, now: u64) -> bool {
        let due = self.holds && now >= self.next;
        if due {
            (self.holds, self.next) = (false, now + REPORT_EVERY_MS);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_holds_again_and_again_is_said_once_a_minute() {
        let mut reported = Reported::default();
        let lines: Vec<bool> =
            (0..200).map(|second| reported.begin(second * 1000) || reported.end(second * 1000 + 1)).collect();
        assert_eq!(lines.iter().filter(|line| **line).count(), 4, "at 0, 60, 120 and 180 s");
        assert!(lines[0] && !lines[1]);
    }
}

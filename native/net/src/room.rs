//! Room for connections: how many are open and how fast they came, by listener and by address, against the limits in
//! force; and the wake-up of the acceptor that waits for one to close.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::connection_limits::ConnectionLimits;
use super::connection_rate::ConnectionRate;
use super::wake_up::WakeUp;

/// Rates of addresses that are remembered before the idle ones among them are looked for.
const FEW_RATES: usize = 1024;

/// Whether the next connection of a listener may be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Now,
    /// As many are open as may be; why, for the log.
    Full(String),
    /// Not before so many milliseconds: connections come too fast.
    Later(u64),
}

/// What becomes of a connection that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It has its place, which is to be given back.
    Taken,
    /// Its address has as many open as it may.
    TooMany(usize),
    /// Its address is too fast; its socket is to be closed after so many milliseconds.
    TooFast(u64),
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    /// Connections that came in since the start, those turned away at once left out.
    accepted: FxHashMap<Arc<str>, u64>,
    of_listener: FxHashMap<Arc<str>, usize>,
    of_address: FxHashMap<IpAddr, usize>,
    rate: ConnectionRate,
    rate_of_listener: FxHashMap<Arc<str>, ConnectionRate>,
    rate_of_address: FxHashMap<IpAddr, ConnectionRate>,
    /// How many rates of addresses there may be before the idle ones are dropped.
    next_sweep: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Room {
    limits: ArcSwap<ConnectionLimits>,
    counts: Mutex<Counts>,
    /// The acceptor waits for a connection to close.
    wanted: AtomicBool,
    wake_up: WakeUp,
}

impl Room {
    /// Nothing taken. Fails when the process has no file descriptor left.
    pub fn new(limits: ConnectionLimits) -> io::Result<Self> {
        Ok(Self {
            limits: ArcSwap::from_pointee(limits),
            counts: Mutex::new(Counts { next_sweep: FEW_RATES, ..Counts::default() }),
            wanted: AtomicBool::new(false),
            wake_up: WakeUp::new()?,
        })
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<ConnectionLimits> {
        self.limits.load_full()
    }

    /// Changes the limits, and has the acceptor look again. Connections that are open stay, also where they are more.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.limits.store(Arc::new(limits));
        self.wake();
    }

    /// Connections open.
    pub fn taken(&self) -> usize {
        self.counts.lock().total
    }

    /// Of each listener to which somebody came: its name, the connections that are open, and those accepted since the start.
    pub fn of_listeners(&self) -> Vec<(Arc<str>, usize, u64)> {
        let counts = self.counts.lock();
        let open = |listener| counts.of_listener.get(listener).copied().unwrap_or(0);
        let mut found: Vec<_> =
            counts.accepted.iter().map(|(listener, all)| (Arc::clone(listener), open(listener), *all)).collect();
        found.sort_unstable();
        found
    }

    /// Whether the next connection of a listener may be accepted, before anything is known of it.
    pub fn admission(&self, listener: &Arc<str>, now: u64) -> Admission {
        let limits = self.limits.load();
        let own = limits.listeners.get(&**listener);
        let is_protected = own.is_some_and(|own| own.is_protected);
        let mut counts = self.counts.lock();
        if let Some(own) = own
            && counts.of_listener.get(listener).copied().unwrap_or(0) >= own.max_connections
        {
            let name = listener.to_lowercase();
            let (max, key) = (own.max_connections, format!("listener.name.{name}.max.connections"));
            return Admission::Full(format!("{max} connections are open at listener {listener} ({key})"));
        }
        if !is_protected && counts.total >= limits.max_connections {
            let (max, reason) = (limits.max_connections, &limits.max_connections_reason);
            return Admission::Full(format!("{max} connections are open ({reason})"));
        }
        let mut wait = 0;
        if let Some(limit) = limits.creation_rate.filter(|_| !is_protected) {
            wait = counts.rate.wait_ms(now, limit, limits.windows);
        }
        if let Some(limit) = own.and_then(|own| own.creation_rate) {
            let rate = counts.rate_of_listener.entry(Arc::clone(listener)).or_default();
            wait = wait.max(rate.wait_ms(now, limit, limits.windows));
        }
        if wait > 0 { Admission::Later(wait) } else { Admission::Now }
    }

    /// Takes a place for a connection that was accepted, unless its address may have no more.
    pub fn enter(&self, listener: &Arc<str>, address: IpAddr, now: u64) -> Entry {
        let (limits, address) = (self.limits.load(), address.to_canonical());
        let mut counts = self.counts.lock();
        if let Some(limit) = limits.rate_of(address) {
            counts.sweep(now, &limits);
            let rate = counts.rate_of_address.entry(address).or_default();
            let wait = rate.wait_ms(now, limit, limits.windows);
            if wait > 0 {
                return Entry::TooFast(wait);
            }
            rate.record(now, limits.windows);
        }
        let max = limits.max_of(address);
        // As in Kafka, one that is turned away counts among those that came.
        counts.record(listener, now, &limits);
        if counts.of_address.get(&address).copied().unwrap_or(0) >= max {
            return Entry::TooMany(max);
        }
        counts.total += 1;
        *counts.accepted.entry(Arc::clone(listener)).or_default() += 1;
        *counts.of_listener.entry(Arc::clone(listener)).or_default() += 1;
        *counts.of_address.entry(address).or_default() += 1;
        Entry::Taken
    }

    /// A connection has closed: wakes the acceptor where it waits for that.
    pub fn give_back(&self, listener: &Arc<str>, address: IpAddr) {
        let mut counts = self.counts.lock();
        counts.total -= 1;
        leave(&mut counts.of_listener, listener);
        leave(&mut counts.of_address, &address.to_canonical());
        drop(counts);
        if self.wanted.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Asks for a wake-up when the next connection closes. Who asks looks at [`Room::admission`] again afterwards.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Wakes the acceptor.
    pub fn wake(&self) {
        self.wake_up.wake();
    }

    /// The acceptor is awake.
    pub fn woken(&self) {
        self.wake_up.woken();
    }

    /// The descriptor that is readable after [`Room::wake`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake_up.fd()
    }
}

impl Counts {
    fn record(&mut self, listener: &Arc<str>, now: u64, limits: &ConnectionLimits) {
        let own = limits.listeners.get(&**listener);
        if limits.creation_rate.is_some() && !own.is_some_and(|own| own.is_protected) {
            self.rate.record(now, limits.windows);
        }
        if own.is_some_and(|own| own.creation_rate.is_some()) {
            self.rate_of_listener.entry(Arc::clone(listener)).or_default().record(now, limits.windows);
        }
    }

    /// Forgets addresses that nobody came from of late, before there are too many.
    fn sweep(&mut self, now: u64, limits: &ConnectionLimits) {
        if self.rate_of_address.len() >= self.next_sweep {
            self.rate_of_address.retain(|_, rate| !rate.is_idle(now, limits.windows));
            self.next_sweep = (2 * self.rate_of_address.len()).max(FEW_RATES);
        }
    }
}

/// Counts one less; a key without any is not kept.
fn leave<K: std::hash::Hash + Eq>(counts: &mut FxHashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
#[path = "room/tests.rs"]
mod tests;

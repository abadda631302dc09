//! The connection counts and rates, by listener and by address, against the limits in force; and the wake-up of an acceptor
//! that waits for a connection to close.

use std::cmp::Reverse;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::accepting::connection_limits::ConnectionLimits;
use crate::accepting::connection_rate::ConnectionRate;
use crate::scheduling::wake_up::WakeUp;

/// The number of address rates at which idle ones are first removed.
const FEW_RATES: usize = 1024;

/// Whether the next connection of a listener may be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may be accepted.
    Now,
    /// The limit on open connections is reached, by this limit (for the log).
    Full(String),
    /// Not before so many milliseconds: the rate limit is exceeded.
    Later(u64),
}

/// The decision on an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The connection is counted; [`ConnectionSlots::give_back`] has to be called when it closes.
    Taken,
    /// Its address has reached its limit on open connections.
    TooMany(usize),
    /// Its address exceeds its rate; its socket has to be closed after so many milliseconds.
    TooFast(u64),
}

/// The counts of a listener since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerCounts {
    /// The listener.
    pub name: Arc<str>,
    /// Open connections.
    pub open: usize,
    /// Accepted connections, without those closed at once for a limit.
    pub accepted: u64,
    /// Milliseconds in which the rate limit kept connections in the system's backlog.
    pub waited_ms: u64,
    /// Sum of the milliseconds by which the close of connections was delayed for the rate of their addresses.
    pub addresses_waited_ms: u64,
}

/// The counts of one listener since the start.
#[derive(Debug, Default)]
struct Arrivals {
    accepted: u64,
    waited_ms: u64,
    addresses_waited_ms: u64,
    /// Since when the rate limit blocks the next connection.
    waits_since: Option<u64>,
}

/// The counts of an address with a rate limit.
#[derive(Debug, Default)]
struct OfAddress {
    rate: ConnectionRate,
    accepted: u64,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    arrivals: FxHashMap<Arc<str>, Arrivals>,
    of_listener: FxHashMap<Arc<str>, usize>,
    of_address: FxHashMap<IpAddr, usize>,
    rate: ConnectionRate,
    rate_of_listener: FxHashMap<Arc<str>, ConnectionRate>,
    rate_of_address: FxHashMap<IpAddr, OfAddress>,
    /// The number of address rates at which idle ones are next removed.
    next_sweep: usize,
    /// The number of listeners that the rate limit blocks.
    waiting: usize,
}

/// The connection counts and rates, and their limits.
#[derive(Debug)]
pub struct ConnectionSlots {
    limits: ArcSwap<ConnectionLimits>,
    counts: Mutex<Counts>,
    /// Whether the acceptor waits for a connection to close.
    wanted: AtomicBool,
    wake_up: WakeUp,
}

impl ConnectionSlots {
    /// Without connections. Fails when the process has no file descriptor left.
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

    /// Changes the limits, and wakes the acceptor. Open connections stay, even above a limit.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.limits.store(Arc::new(limits));
        self.wake();
    }

    /// The number of open connections.
    pub fn taken(&self) -> usize {
        self.counts.lock().total
    }

    /// The counts of each listener that has had a connection, by name.
    pub fn of_listeners(&self) -> Vec<ListenerCounts> {
        let counts = self.counts.lock();
        let mut found: Vec<_> = counts
            .arrivals
            .iter()
            .map(|(name, arrivals)| ListenerCounts {
                name: Arc::clone(name),
                open: counts.of_listener.get(name).copied().unwrap_or(0),
                accepted: arrivals.accepted,
                waited_ms: arrivals.waited_ms,
                addresses_waited_ms: arrivals.addresses_waited_ms,
            })
            .collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Accepted connections of addresses with a rate limit, for the `most` addresses with the highest counts; and the number
    /// of addresses left out. The counts of an address may be dropped after the window of a rate without connections.
    pub fn of_addresses(&self, most: usize) -> (Vec<(IpAddr, u64)>, usize) {
        let counts = self.counts.lock();
        let mut found: Vec<_> =
            counts.rate_of_address.iter().map(|(address, counted)| (*address, counted.accepted)).collect();
        drop(counts);
        found.sort_unstable_by_key(|(address, accepted)| (Reverse(*accepted), *address));
        let left_out = found.len().saturating_sub(most);
        found.truncate(most);
        (found, left_out)
    }

    /// Whether a listener may accept its next connection, from whichever address.
    pub fn admission(&self, listener: &Arc<str>, now: u64) -> Admission {
        let mut counts = self.counts.lock();
        let admission = counts.admission(listener, now, &self.limits.load());
        let waits = matches!(admission, Admission::Later(_));
        if waits || counts.waiting > 0 {
            counts.note_wait(listener, waits, now);
        }
        admission
    }

    /// Counts an accepted connection, unless its address exceeds a limit.
    pub fn enter(&self, listener: &Arc<str>, address: IpAddr, now: u64) -> Entry {
        let (limits, address) = (self.limits.load(), address.to_canonical());
        let mut counts = self.counts.lock();
        if let Some(limit) = limits.rate_of(address) {
            counts.sweep(now, &limits);
            let of_address = counts.rate_of_address.entry(address).or_default();
            let wait = of_address.rate.wait_ms(now, limit, limits.windows);
            if wait > 0 {
                counts.arrivals(listener).addresses_waited_ms += wait;
                return Entry::TooFast(wait);
            }
            of_address.rate.record(now, limits.windows);
            of_address.accepted += 1;
        }
        let max = limits.max_of(address);
        // As in Kafka, a connection that is closed for a limit counts in the rates.
        counts.record(listener, now, &limits);
        if counts.of_address.get(&address).copied().unwrap_or(0) >= max {
            return Entry::TooMany(max);
        }
        counts.total += 1;
        counts.arrivals(listener).accepted += 1;
        *counts.of_listener.entry(Arc::clone(listener)).or_default() += 1;
        *counts.of_address.entry(address).or_default() += 1;
        Entry::Taken
    }

    /// Counts a closed connection; wakes the acceptor if it waits for one.
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

    /// Requests a wake-up when the next connection closes. The caller checks [`ConnectionSlots::admission`] again afterwards.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Wakes the acceptor.
    pub fn wake(&self) {
        self.wake_up.wake();
    }

    /// Records that the acceptor is awake.
    pub fn woken(&self) {
        self.wake_up.woken();
    }

    /// The descriptor that is readable after [`ConnectionSlots::wake`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake_up.fd()
    }
}

impl Counts {
    fn admission(&mut self, listener: &Arc<str>, now: u64, limits: &ConnectionLimits) -> Admission {
        let own = limits.listeners.get(&**listener);
        let is_protected = own.is_some_and(|own| own.is_protected);
        if let Some(own) = own
            && self.of_listener.get(listener).copied().unwrap_or(0) >= own.max_connections
        {
            let name = listener.to_lowercase();
            let (max, key) = (own.max_connections, format!("listener.name.{name}.max.connections"));
            return Admission::Full(format!("{max} connections are open at listener {listener} ({key})"));
        }
        if !is_protected && self.total >= limits.max_connections {
            let (max, reason) = (limits.max_connections, &limits.max_connections_reason);
            return Admission::Full(format!("{max} connections are open ({reason})"));
        }
        let mut wait = 0;
        if let Some(limit) = limits.creation_rate.filter(|_| !is_protected) {
            wait = self.rate.wait_ms(now, limit, limits.windows);
        }
        if let Some(limit) = own.and_then(|own| own.creation_rate) {
            let rate = self.rate_of_listener.entry(Arc::clone(listener)).or_default();
            wait = wait.max(rate.wait_ms(now, limit, limits.windows));
        }
        if wait > 0 { Admission::Later(wait) } else { Admission::Now }
    }

    fn arrivals(&mut self, listener: &Arc<str>) -> &mut Arrivals {
        self.arrivals.entry(Arc::clone(listener)).or_default()
    }

    /// Records whether the rate limit blocks the next connection of a listener, and adds up the time of a block that ends.
    fn note_wait(&mut self, listener: &Arc<str>, waits: bool, now: u64) {
        let arrivals = self.arrivals(listener);
        let before = arrivals.waits_since;
        arrivals.waits_since = waits.then_some(now);
        arrivals.waited_ms += before.map_or(0, |since| now.saturating_sub(since));
        self.waiting = self.waiting + usize::from(waits) - usize::from(before.is_some());
    }

    fn record(&mut self, listener: &Arc<str>, now: u64, limits: &ConnectionLimits) {
        let own = limits.listeners.get(&**listener);
        if limits.creation_rate.is_some() && !own.is_some_and(|own| own.is_protected) {
            self.rate.record(now, limits.windows);
        }
        if own.is_some_and(|own| own.creation_rate.is_some()) {
            self.rate_of_listener.entry(Arc::clone(listener)).or_default().record(now, limits.windows);
        }
    }

    /// Removes idle addresses, when there are many.
    fn sweep(&mut self, now: u64, limits: &ConnectionLimits) {
        if self.rate_of_address.len() >= self.next_sweep {
            self.rate_of_address.retain(|_, counted| !counted.rate.is_idle(now, limits.windows));
            self.next_sweep = (2 * self.rate_of_address.len()).max(FEW_RATES);
        }
    }
}

/// Subtracts one from a count; removes it at zero.
fn leave<K: std::hash::Hash + Eq>(counts: &mut FxHashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
#[path = "connection_slots/tests.rs"]
mod tests;

//! Room for connections: how many are open and how fast they came, by listener and by address, against the limits in
//! force; and the wake-up of the acceptor that waits for one to close.

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

/// What has come to a listener since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerCounts {
    /// The listener.
    pub name: Arc<str>,
    /// Connections that are open.
    pub open: usize,
    /// Connections that came in, those turned away at once left out.
    pub accepted: u64,
    /// Milliseconds in which connections waited in the system's queue, as they came too fast.
    pub waited_ms: u64,
    /// Milliseconds that connections of addresses that were too fast had to wait, one by one, before they were closed.
    pub addresses_waited_ms: u64,
}

/// What has come to one listener since the start.
#[derive(Debug, Default)]
struct Came {
    accepted: u64,
    waited_ms: u64,
    addresses_waited_ms: u64,
    /// Since when a connection may not come, as others came too fast.
    waits_since: Option<u64>,
}

/// What has come from an address that has a rate.
#[derive(Debug, Default)]
struct OfAddress {
    rate: ConnectionRate,
    accepted: u64,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    came: FxHashMap<Arc<str>, Came>,
    of_listener: FxHashMap<Arc<str>, usize>,
    of_address: FxHashMap<IpAddr, usize>,
    rate: ConnectionRate,
    rate_of_listener: FxHashMap<Arc<str>, ConnectionRate>,
    rate_of_address: FxHashMap<IpAddr, OfAddress>,
    /// How many rates of addresses there may be before the idle ones are dropped.
    next_sweep: usize,
    /// Listeners whose next connection waits, as others came too fast.
    waiting: usize,
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

    /// Of each listener to which somebody came, by name.
    pub fn of_listeners(&self) -> Vec<ListenerCounts> {
        let counts = self.counts.lock();
        let mut found: Vec<_> = counts
            .came
            .iter()
            .map(|(name, came)| ListenerCounts {
                name: Arc::clone(name),
                open: counts.of_listener.get(name).copied().unwrap_or(0),
                accepted: came.accepted,
                waited_ms: came.waited_ms,
                addresses_waited_ms: came.addresses_waited_ms,
            })
            .collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Connections that came in from addresses that have a rate, from the `most` of which the most came; and how many such
    /// addresses there are beside. An address is forgotten when nobody comes from it for the span of a rate and there are
    /// many.
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

    /// Whether the next connection of a listener may be accepted, before anything is known of it.
    pub fn admission(&self, listener: &Arc<str>, now: u64) -> Admission {
        let mut counts = self.counts.lock();
        let admission = counts.admission(listener, now, &self.limits.load());
        let waits = matches!(admission, Admission::Later(_));
        if waits || counts.waiting > 0 {
            counts.note_wait(listener, waits, now);
        }
        admission
    }

    /// Takes a place for a connection that was accepted, unless its address may have no more.
    pub fn enter(&self, listener: &Arc<str>, address: IpAddr, now: u64) -> Entry {
        let (limits, address) = (self.limits.load(), address.to_canonical());
        let mut counts = self.counts.lock();
        if let Some(limit) = limits.rate_of(address) {
            counts.sweep(now, &limits);
            let of_address = counts.rate_of_address.entry(address).or_default();
            let wait = of_address.rate.wait_ms(now, limit, limits.windows);
            if wait > 0 {
                counts.came(listener).addresses_waited_ms += wait;
                return Entry::TooFast(wait);
            }
            of_address.rate.record(now, limits.windows);
            of_address.accepted += 1;
        }
        let max = limits.max_of(address);
        // As in Kafka, one that is turned away counts among those that came.
        counts.record(listener, now, &limits);
        if counts.of_address.get(&address).copied().unwrap_or(0) >= max {
            return Entry::TooMany(max);
        }
        counts.total += 1;
        counts.came(listener).accepted += 1;
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

    fn came(&mut self, listener: &Arc<str>) -> &mut Came {
        self.came.entry(Arc::clone(listener)).or_default()
    }

    /// Notes whether the next connection of a listener waits from now on, and how long it has waited where it has.
    fn note_wait(&mut self, listener: &Arc<str>, waits: bool, now: u64) {
        let came = self.came(listener);
        let before = came.waits_since;
        came.waits_since = waits.then_some(now);
        came.waited_ms += before.map_or(0, |since| now.saturating_sub(since));
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

    /// Forgets addresses that nobody came from of late, before there are too many.
    fn sweep(&mut self, now: u64, limits: &ConnectionLimits) {
        if self.rate_of_address.len() >= self.next_sweep {
            self.rate_of_address.retain(|_, counted| !counted.rate.is_idle(now, limits.windows));
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

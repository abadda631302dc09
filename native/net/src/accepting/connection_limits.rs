//! How many connections there may be, and how fast they may come: what the control plane decides, as one table that is
//! swapped whole. No value has a default here.

use std::collections::HashMap;
use std::net::IpAddr;

/// Over what a rate of connections is counted: the span of `count` samples of `length_ms` each, the newest unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// `quota.window.size.seconds`.
    pub length_ms: u64,
    /// `quota.window.num`.
    pub count: u32,
}

/// The limits of one listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerLimits {
    /// Connections open at a time.
    pub max_connections: usize,
    /// Connections accepted in a second; `None` without a limit.
    pub creation_rate: Option<f64>,
    /// Whether the limits of the whole broker do not hold for it, as brokers have to reach each other.
    pub is_protected: bool,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionLimits {
    /// Connections open at a time.
    pub max_connections: usize,
    /// Where that number comes from, for the log.
    pub max_connections_reason: String,
    /// Connections accepted in a second, over all listeners; `None` without a limit.
    pub creation_rate: Option<f64>,
    /// By listener; one that is not here has no limits of its own.
    pub listeners: HashMap<String, ListenerLimits>,
    /// Connections open at a time from one address.
    pub max_per_address: usize,
    /// The same of single addresses.
    pub max_of_address: HashMap<IpAddr, usize>,
    /// Connections accepted in a second from one address; `None` without a limit.
    pub address_rate: Option<f64>,
    /// The same of single addresses.
    pub rate_of_address: HashMap<IpAddr, f64>,
    /// What rates are counted over.
    pub windows: Windows,
    /// Sockets that are kept for a while before they are closed, as their address is too fast; more are closed at once.
    pub most_delayed: usize,
}

impl ConnectionLimits {
    /// One number for all connections, and nothing else.
    pub fn only(max_connections: usize, max_connections_reason: String) -> Self {
        Self {
            max_connections,
            max_connections_reason,
            creation_rate: None,
            listeners: HashMap::new(),
            max_per_address: usize::MAX,
            max_of_address: HashMap::new(),
            address_rate: None,
            rate_of_address: HashMap::new(),
            windows: Windows { length_ms: 1000, count: 1 },
            most_delayed: 0,
        }
    }

    /// The most connections of an address.
    pub fn max_of(&self, address: IpAddr) -> usize {
        self.max_of_address.get(&address).copied().unwrap_or(self.max_per_address)
    }

    /// The most connections a second of an address; `None` without a limit.
    pub fn rate_of(&self, address: IpAddr) -> Option<f64> {
        self.rate_of_address.get(&address).copied().or(self.address_rate)
    }
}

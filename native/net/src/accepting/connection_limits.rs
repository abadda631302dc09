//! Limits on the number and the rate of connections: the control plane's decisions in one table, which is replaced as a
//! whole. No value has a default here.

use std::collections::HashMap;
use std::net::IpAddr;

/// The window of a connection rate: `count` samples of `length_ms` each, the newest incomplete.
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
    /// Limit on open connections.
    pub max_connections: usize,
    /// Limit on new connections in a second; `None` for no limit.
    pub creation_rate: Option<f64>,
    /// Whether the listener is exempt from the limits of the whole broker, as brokers have to reach each other.
    pub is_protected: bool,
}

/// The limits of a broker.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionLimits {
    /// Limit on open connections.
    pub max_connections: usize,
    /// The origin of that number, for the log.
    pub max_connections_reason: String,
    /// Limit on new connections in a second, over all listeners; `None` for no limit.
    pub creation_rate: Option<f64>,
    /// By listener; a listener that is not in the table has no limits of its own.
    pub listeners: HashMap<String, ListenerLimits>,
    /// Limit on open connections of one address.
    pub max_per_address: usize,
    /// The same for particular addresses.
    pub max_of_address: HashMap<IpAddr, usize>,
    /// Limit on new connections in a second of one address; `None` for no limit.
    pub address_rate: Option<f64>,
    /// The same for particular addresses.
    pub rate_of_address: HashMap<IpAddr, f64>,
    /// The window of the rates.
    pub windows: Windows,
    /// The most sockets whose close is delayed because their address exceeds its rate; more are closed at once.
    pub most_delayed: usize,
}

impl ConnectionLimits {
    /// A limit on all connections, and no other limits.
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

    /// The limit on open connections of an address.
    pub fn max_of(&self, address: IpAddr) -> usize {
        self.max_of_address.get(&address).copied().unwrap_or(self.max_per_address)
    }

    /// The rate limit of an address, in connections a second; `None` for no limit.
    pub fn rate_of(&self, address: IpAddr) -> Option<f64> {
        self.rate_of_address.get(&address).copied().or(self.address_rate)
    }
}

//! Limits on connections, read from the attributes of a Python object.

use std::collections::HashMap;
use std::net::IpAddr;

use pybroker_net::{ConnectionLimits, ListenerLimits, Windows};
use pyo3::prelude::*;

/// See `_ConnectionLimits` in `_native.pyi`.
#[derive(FromPyObject)]
pub struct Limits {
    max_connections: usize,
    max_connections_reason: String,
    creation_rate: Option<f64>,
    listeners: HashMap<String, (usize, Option<f64>, bool)>,
    max_per_address: usize,
    max_of_address: HashMap<IpAddr, usize>,
    address_rate: Option<f64>,
    rate_of_address: HashMap<IpAddr, f64>,
    window_ms: u64,
    windows: u32,
    most_delayed: usize,
}

impl From<Limits> for ConnectionLimits {
    fn from(limits: Limits) -> Self {
        let of_listener = |(max_connections, creation_rate, is_protected)| ListenerLimits {
            max_connections,
            creation_rate,
            is_protected,
        };
        Self {
            max_connections: limits.max_connections,
            max_connections_reason: limits.max_connections_reason,
            creation_rate: limits.creation_rate,
            listeners: limits.listeners.into_iter().map(|(name, own)| (name, of_listener(own))).collect(),
            max_per_address: limits.max_per_address,
            max_of_address: limits.max_of_address,
            address_rate: limits.address_rate,
            rate_of_address: limits.rate_of_address,
            windows: Windows { length_ms: limits.window_ms, count: limits.windows },
            most_delayed: limits.most_delayed,
        }
    }
}

//! Accepting connections: listeners, the acceptor thread, and limits on the number and the rate of connections.

pub(crate) mod accepted;
pub(crate) mod acceptor;
pub(crate) mod connection_limits;
pub(crate) mod connection_rate;
pub(crate) mod connection_slots;
pub(crate) mod listener;
pub(crate) mod open_connections;
pub(crate) mod refusals;

//! Connections on their way in: listeners, the acceptor thread, how many connections there are and how fast they come.

pub(crate) mod accepted;
pub(crate) mod acceptor;
pub(crate) mod connection_limits;
pub(crate) mod connection_rate;
pub(crate) mod listener;
pub(crate) mod open_connections;
pub(crate) mod refusals;
pub(crate) mod room;

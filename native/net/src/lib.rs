//! Sockets: accepting, framing, the hot path of Produce and Fetch, answers in order, `sendfile`.
//!
//! One acceptor thread, `num.network.threads` processors (the seeds' Reactor pattern), each with its own epoll set and
//! its own connections. What Kafka hands to I/O threads through a queue is done in place on the processor. Everything
//! but Produce and Fetch goes up to the control plane as an [`Event`] and comes back as [`DataPlane::respond`].
//!
//! Knows partitions and wire messages. Must not know Python, configuration files, or who may do what.

mod acceptor;
mod api_versions;
mod bounds;
mod connection;
mod control_room;
mod cross_thread;
mod data_plane;
mod events;
mod hot_path;
mod inbox;
mod interception;
mod open_connections;
mod processor;
mod request_memory;
mod requests;
mod response;
mod room;
mod settings;
mod slot;
mod timer_wheel;

pub use acceptor::ListenError;
pub use data_plane::DataPlane;
pub use events::{ControlRequest, Event, EventQueue, Level, UnresolvedRequest};
pub use hot_path::{FETCH_VERSIONS, PRODUCE_VERSIONS};
pub use interception::Decision;
pub use settings::{ListenerSettings, Settings};

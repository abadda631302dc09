//! How a connection is secured by the side that opens it: a client's, and a broker's that fetches from another.
//!
//! Owns the bytes over a socket, as they are or through TLS ([`Transport`]), and the mechanisms of SASL as machines
//! without I/O ([`sasl`]). Must not know frames, nor where certificates and credentials come from
//! (`docs/adr/0063-nodes-are-clients-of-each-other.md`).

pub mod sasl;
mod secret;
mod transport;

pub use secret::Secret;
pub use transport::{Transport, tls_failure};

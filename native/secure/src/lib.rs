//! The security of a connection at the side that opens it: a client, or a broker that fetches from another.
//!
//! Owns the bytes over a socket, unencrypted or through TLS ([`Transport`]), and the SASL mechanisms as state machines
//! without I/O ([`sasl`]). Must not know frames, nor the source of certificates and credentials
//! (`docs/adr/0063-nodes-are-clients-of-each-other.md`).

pub mod sasl;
mod secret;
mod transport;

pub use secret::Secret;
pub use transport::{Transport, tls_failure};

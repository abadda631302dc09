//! The settings of a listener, read from the attributes of a Python object.

use std::sync::Arc;

use pybroker_net::{Identity, ListenerSettings, ListenerTls};
use pyo3::prelude::*;

use crate::net::listener_tls::PyServerTls;

/// See `_ListenerSettings` in `_native.pyi`.
#[derive(FromPyObject)]
pub struct Listening {
    name: String,
    host: String,
    port: u16,
    backlog: i32,
    congestion_control: Option<String>,
    control_only: bool,
    principal: Option<(String, String)>,
    unauthenticated_max_bytes: usize,
    authentication_timeout_ms: u64,
    tls: Option<(Py<PyServerTls>, u64)>,
}

impl From<Listening> for ListenerSettings {
    fn from(listening: Listening) -> Self {
        let Listening { name, host, port, backlog, congestion_control, control_only, .. } = listening;
        Self {
            name,
            host,
            port,
            backlog,
            congestion_control,
            control_only,
            identity: listening.principal.map(|principal| Arc::new(identity(principal))),
            unauthenticated_max_bytes: listening.unauthenticated_max_bytes,
            authentication_timeout_ms: listening.authentication_timeout_ms,
            tls: listening
                .tls
                .map(|(tls, handshake_timeout_ms)| ListenerTls { tls: tls.get().inner.clone(), handshake_timeout_ms }),
        }
    }
}

/// A principal's kind and name.
pub fn identity(principal: (String, String)) -> Identity {
    Identity { kind: principal.0.into(), name: principal.1.into() }
}

//! How a listener is opened, read from the attributes of a Python object.

use std::sync::Arc;

use pybroker_net::{Identity, ListenerSettings};
use pyo3::prelude::*;

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
        }
    }
}

/// A principal's kind and name.
pub fn identity(principal: (String, String)) -> Identity {
    Identity { kind: principal.0.into(), name: principal.1.into() }
}

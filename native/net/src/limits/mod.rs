//! Limits over all clients: memory for requests, and control requests in work.

pub(crate) mod control_budget;
pub(crate) mod request_memory;

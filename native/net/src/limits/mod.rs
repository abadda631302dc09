//! Limits over all clients: memory for requests, and control requests in work.

pub(crate) mod control_room;
pub(crate) mod request_memory;

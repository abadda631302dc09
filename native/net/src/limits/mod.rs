//! Bounds of what clients may keep busy at a time: memory for requests, and control requests in work.

pub(crate) mod control_room;
pub(crate) mod request_memory;

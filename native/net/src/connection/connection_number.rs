//! Connection numbers: unique over the life of the data plane, each with the processor that owns the connection.

/// Bits of a connection number that contain its processor; the other bits count connections.
const PROCESSOR_BITS: u32 = 8;

/// The most processors: `Inboxes::post_many` keeps the processors to wake in a word of so many bits.
pub const MOST_PROCESSORS: usize = 64;

/// The connection number of the control plane, when it waits itself.
pub const CONTROL_PLANE: u64 = u64::MAX;

/// The processor that owns a connection.
pub fn processor_of(connection: u64) -> usize {
    (connection & ((1 << PROCESSOR_BITS) - 1)) as usize
}

/// The number of the `count`th connection, owned by `processor`.
pub fn connection_number(count: u64, processor: usize) -> u64 {
    count << PROCESSOR_BITS | processor as u64
}

//! Connection numbers: unique over the life of the data plane, each naming the processor that owns the connection.

/// Bits of a connection number that name its processor; the rest count connections.
const PROCESSOR_BITS: u32 = 8;

/// Most processors that there may be: so many bits has the word in which `Inboxes::post_many` notes whom to wake.
pub const MOST_PROCESSORS: usize = 64;

/// Stands for a connection where the control plane itself waits.
pub const CONTROL_PLANE: u64 = u64::MAX;

/// The processor that owns a connection.
pub fn processor_of(connection: u64) -> usize {
    (connection & ((1 << PROCESSOR_BITS) - 1)) as usize
}

/// The number of the `count`th connection, owned by `processor`.
pub fn connection_number(count: u64, processor: usize) -> u64 {
    count << PROCESSOR_BITS | processor as u64
}

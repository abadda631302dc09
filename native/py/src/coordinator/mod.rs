//! A partition, as its coordinator reads and writes it.

pub(crate) mod partition_log;
pub(crate) mod record_reading;
pub(crate) mod record_table;
pub(crate) mod record_type;

//! Converts `pybroker.client.settings.ProducerSettings` to the engine's configuration. Knows no default.

use std::time::Duration;

use pybroker_client::{Continuation, Partitioner, ProducerConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::client::connection::ConnectionSettings;

/// The attributes beyond the connection's.
#[derive(FromPyObject)]
pub struct ProducerSettings {
    batch_size: usize,
    linger_ms: f64,
    buffer_memory: usize,
    max_block_ms: u64,
    delivery_timeout_ms: u64,
    max_request_size: usize,
    max_in_flight_requests_per_connection: usize,
    retries: u32,
    compression_type: String,
    compression_level: Option<i32>,
    partitioner: String,
    partitioner_ignore_keys: bool,
    transactional_id: Option<String>,
}

impl ProducerSettings {
    /// All settings of the engine; `settings` has those of its connections.
    pub fn config(self, settings: &Bound<'_, PyAny>, acks: i16, enable_idempotence: bool) -> PyResult<ProducerConfig> {
        Ok(ProducerConfig {
            connection: settings.extract::<ConnectionSettings>()?.config(),
            acks,
            batch_size: self.batch_size,
            linger: Duration::from_secs_f64(self.linger_ms.max(0.0) / 1e3),
            buffer_memory: self.buffer_memory,
            max_block: Duration::from_millis(self.max_block_ms),
            delivery_timeout: Duration::from_millis(self.delivery_timeout_ms),
            max_request_size: self.max_request_size,
            max_in_flight: self.max_in_flight_requests_per_connection,
            retries: self.retries,
            enable_idempotence,
            compression: self.compression_type.parse().map_err(PyValueError::new_err)?,
            compression_level: self.compression_level,
            partitioner: match self.partitioner.as_str() {
                "" => Partitioner::Sticky { ignores_keys: self.partitioner_ignore_keys },
                name => name.parse().map_err(PyValueError::new_err)?,
            },
            continues: None,
            transactional_id: self.transactional_id,
        })
    }
}

/// Producer id, epoch, and by topic and partition the sequence number of the next record.
pub type Continues = (i64, i16, Vec<(String, i32, i32)>);

/// The identity and sequence numbers of another producer to continue.
pub fn continuation((producer_id, epoch, sequences): Continues) -> Continuation {
    let sequences = sequences.into_iter().map(|(topic, index, next)| ((topic, index), next)).collect();
    Continuation { producer_id, epoch, sequences }
}

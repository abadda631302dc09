//! `LogConfig`: the settings of one log, from Python's `config` for `storage`.

use pybroker_record::{Compression, TimestampType};
use pybroker_storage::LogConfig;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The settings of one log, complete; see `_native.pyi`.
#[pyclass(frozen, name = "LogConfig", module = "pybroker._native")]
pub struct PyLogConfig {
    pub config: LogConfig,
}

#[pymethods]
impl PyLogConfig {
    #[new]
    #[pyo3(signature = (*, segment_bytes, segment_ms, segment_jitter_ms, segment_index_bytes, index_interval_bytes, max_message_bytes, compression_type, compression_level, timestamp_type, timestamp_before_max_ms, timestamp_after_max_ms, require_keys, preallocate, delete_retention_ms, flush_messages, flush_ms, flush_group, producer_id_expiration_ms, max_decompressed_bytes, file_delete_delay_ms))]
    #[allow(clippy::too_many_arguments, reason = "keyword-only: one argument a field")]
    fn new(
        segment_bytes: u64,
        segment_ms: i64,
        segment_jitter_ms: i64,
        segment_index_bytes: u32,
        index_interval_bytes: u32,
        max_message_bytes: usize,
        compression_type: &str,
        compression_level: Option<i32>,
        timestamp_type: &str,
        timestamp_before_max_ms: i64,
        timestamp_after_max_ms: i64,
        require_keys: bool,
        preallocate: bool,
        delete_retention_ms: i64,
        flush_messages: i64,
        flush_ms: i64,
        flush_group: bool,
        producer_id_expiration_ms: i64,
        max_decompressed_bytes: usize,
        file_delete_delay_ms: i64,
    ) -> PyResult<Self> {
        let timestamp_type = match timestamp_type {
            "CreateTime" => TimestampType::CreateTime,
            "LogAppendTime" => TimestampType::LogAppendTime,
            other => {
                let text = format!("timestamp_type is {other:?}; it has to be 'CreateTime' or 'LogAppendTime'");
                return Err(PyValueError::new_err(text));
            }
        };
        let compression = match compression_type {
            "producer" => None,
            "uncompressed" => Some(Compression::None),
            codec => Some(codec.parse().map_err(PyValueError::new_err)?),
        };
        Ok(Self {
            config: LogConfig {
                segment_bytes,
                segment_ms,
                segment_jitter_ms,
                segment_index_bytes,
                index_interval_bytes,
                max_message_bytes,
                compression,
                compression_level,
                timestamp_type,
                timestamp_before_max_ms,
                timestamp_after_max_ms,
                require_keys,
                preallocate,
                delete_retention_ms,
                flush_messages,
                flush_ms,
                flush_group,
                producer_id_expiration_ms,
                max_decompressed_bytes,
                file_delete_delay_ms,
            },
        })
    }
}

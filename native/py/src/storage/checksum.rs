//! The checksum of a batch, for tools that read logs.

use pyo3::prelude::*;

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data))]
pub fn crc32c(data: &[u8]) -> u32 {
    pybroker_record::crc32c(data)
}

//! Decompresses clients' bytes that are not record batches: telemetry (KIP-714).

use pybroker_record::{Compression, RecordError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::storage::checksum;

/// Registers the functions on bytes.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(checksum::crc32c, m)?)?;
    m.add_function(wrap_pyfunction!(decompress, m)?)
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (codec, data, max_bytes))]
pub fn decompress<'py>(
    py: Python<'py>,
    codec: i8,
    data: &[u8],
    max_bytes: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let codec = Compression::from_code(codec).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let decompressed = py.detach(|| {
        let mut out = Vec::new();
        pybroker_record::decompress(codec, data, max_bytes, &mut out).map(|()| out)
    });
    match decompressed {
        Ok(bytes) => Ok(Some(PyBytes::new(py, &bytes))),
        Err(RecordError::TooLarge { .. }) => Ok(None),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

//! The extension module `pybroker._native`: registers what the other files convert.

mod codec;
mod error;
mod quorum;

use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<codec::Schema>()?;
    m.add_class::<quorum::Quorum>()?;
    m.add_class::<quorum::QuorumReady>()?;
    m.add_function(wrap_pyfunction!(quorum::build_leader_change_batch, m)?)?;
    m.add_function(wrap_pyfunction!(quorum::build_record_batch, m)?)?;
    m.add_function(wrap_pyfunction!(quorum::parse_metadata_batches, m)?)?;
    Ok(())
}

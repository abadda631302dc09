//! The extension module `pybroker._native`: registers what the other files convert.

mod codec;
mod error;

use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<codec::Schema>()?;
    Ok(())
}

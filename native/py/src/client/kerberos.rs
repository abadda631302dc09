//! Kerberos tokens, made by Python functions, which call the system's library.
//!
//! Owns the calls. Must not know the content of a token.

use pybroker_client::sasl::{SaslError, Step, TokenMaker, TokenSteps};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Kerberos in Python: a function from a host to the exchange's next function and its first token.
///
/// It is called on the thread that authenticates a connection, and may send requests to a KDC meanwhile.
#[derive(Debug)]
pub struct Kerberos {
    begin: Py<PyAny>,
}

impl Kerberos {
    pub fn new(begin: Py<PyAny>) -> Self {
        Self { begin }
    }
}

impl TokenMaker for Kerberos {
    fn mechanism(&self) -> &'static str {
        "GSSAPI"
    }

    fn begin(&self, host: &str) -> Result<(Box<dyn TokenSteps>, Vec<u8>), SaslError> {
        let (step, token) = called(|py| self.begin.call1(py, (host,))?.extract::<(Py<PyAny>, Vec<u8>)>(py))?;
        Ok((Box::new(KerberosSteps { step }), token))
    }
}

/// One exchange: a function from the server's token to the next token, or to None at the end.
#[derive(Debug)]
struct KerberosSteps {
    step: Py<PyAny>,
}

impl TokenSteps for KerberosSteps {
    fn step(&mut self, token: &[u8]) -> Result<Step, SaslError> {
        let next = called(|py| self.step.call1(py, (PyBytes::new(py, token),))?.extract::<Option<Vec<u8>>>(py))?;
        Ok(next.map_or(Step::Done, Step::Send))
    }
}

/// Calls a Python function; an exception becomes the reason why the exchange fails.
fn called<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, SaslError> {
    let returned = Python::try_attach(|py| call(py).map_err(|error| error.value(py).to_string()));
    returned
        .unwrap_or_else(|| Err("Python's interpreter ends".to_owned()))
        .map_err(|detail| SaslError::Failed { detail })
}

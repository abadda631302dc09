//! TLS and SASL of clients in Python: key material in, sessions and exchanges out.
//!
//! Owns no behaviour. The state shared by the connections of the native engine and of asyncio is created once for a client
//! and passed to both. No `repr` contains a secret.

use std::io::IoSlice;
use std::sync::Arc;

use parking_lot::Mutex;
use pybroker_client::Secret;
use pybroker_client::sasl::{Bearer, Credentials, Exchange, Hash, SaslError, Step, TokenCell};
use pybroker_client::tls::{Tls, TlsError, TlsSession};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::client_error::{AuthenticationError, SettingError};
use crate::client::kerberos::Kerberos;
use crate::client::key_material::Material;

/// Bytes of plaintext of one read of a session.
const PIECE: usize = 16 * 1024;

/// The state shared by all TLS connections of a client.
#[pyclass(frozen, name = "ClientTls", module = "pybroker._native")]
pub struct PyClientTls {
    pub(crate) inner: Tls,
}

#[pymethods]
impl PyClientTls {
    #[new]
    fn new(material: &Bound<'_, PyAny>) -> PyResult<Self> {
        let material: Material = material.extract()?;
        let made = material.settings().and_then(Tls::new);
        Ok(Self { inner: made.map_err(|error| SettingError::new_err(error.to_string()))? })
    }

    fn session(&self, host: &str) -> PyResult<PyTlsSession> {
        let session = self.inner.session(host).map_err(tls_error)?;
        Ok(PyTlsSession { session: Mutex::new(session) })
    }
}

/// The TLS session of one connection, without its socket.
#[pyclass(frozen, name = "TlsSession", module = "pybroker._native")]
pub struct PyTlsSession {
    session: Mutex<TlsSession>,
}

#[pymethods]
impl PyTlsSession {
    #[getter]
    fn is_handshaking(&self) -> bool {
        self.session.lock().is_handshaking()
    }

    fn receive<'py>(&self, py: Python<'py>, ciphertext: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut session = self.session.lock();
        let mut plaintext = Vec::new();
        let mut at = 0;
        loop {
            drain(&mut session, &mut plaintext);
            if at == ciphertext.len() {
                return Ok(PyBytes::new(py, &plaintext));
            }
            at += session.take(&ciphertext[at..]).map_err(tls_error)?;
        }
    }

    fn send(&self, plaintext: &[u8]) -> PyResult<usize> {
        Ok(self.session.lock().write(&[IoSlice::new(plaintext)])?)
    }

    fn end(&self) {
        self.session.lock().end();
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut session = self.session.lock();
        let mut ciphertext = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut ciphertext)?;
        }
        Ok(PyBytes::new(py, &ciphertext))
    }
}

/// Appends the plaintext that is available.
fn drain(session: &mut TlsSession, plaintext: &mut Vec<u8>) {
    loop {
        let begin = plaintext.len();
        plaintext.resize(begin + PIECE, 0);
        let count = session.read(&mut plaintext[begin..]).unwrap_or(0);
        plaintext.truncate(begin + count);
        if count == 0 {
            return;
        }
    }
}

/// The credentials of a client.
#[pyclass(frozen, name = "SaslCredentials", module = "pybroker._native")]
pub struct PySaslCredentials {
    pub(crate) inner: Credentials,
}

#[pymethods]
impl PySaslCredentials {
    #[staticmethod]
    fn plain(username: String, password: String) -> Self {
        Self { inner: Credentials::Plain { username, password: Secret::new(password) } }
    }

    #[staticmethod]
    fn scram(mechanism: &str, username: String, password: String, is_token: bool) -> PyResult<Self> {
        let hash = [Hash::Sha256, Hash::Sha512].into_iter().find(|hash| hash.mechanism() == mechanism);
        let hash = hash.ok_or_else(|| PyValueError::new_err(format!("{mechanism:?} is no mechanism of SCRAM")))?;
        Ok(Self { inner: Credentials::Scram { hash, username, password: Secret::new(password), is_token } })
    }

    #[staticmethod]
    fn oauthbearer() -> Self {
        Self { inner: Credentials::OauthBearer(Arc::new(TokenCell::default())) }
    }

    /// Kerberos; Python functions make the tokens.
    #[staticmethod]
    fn gssapi(begin: Py<PyAny>) -> Self {
        Self { inner: Credentials::Library(Arc::new(Kerberos::new(begin))) }
    }

    #[pyo3(signature = (token, expires_ms, extensions))]
    fn set_token(&self, token: String, expires_ms: Option<i64>, extensions: Vec<(String, String)>) -> PyResult<()> {
        match &self.inner {
            Credentials::OauthBearer(cell) => {
                cell.set(Some(Bearer::new(Secret::new(token), expires_ms, extensions)));
                Ok(())
            }
            other => Err(PyValueError::new_err(format!("{} has no tokens", other.mechanism()))),
        }
    }

    /// Other credentials that share the token with these.
    fn share(&self) -> Self {
        Self { inner: self.inner.clone() }
    }

    #[getter]
    fn is_abandoned(&self) -> bool {
        matches!(&self.inner, Credentials::OauthBearer(cell) if Arc::strong_count(cell) == 1)
    }

    #[getter]
    fn mechanism(&self) -> &'static str {
        self.inner.mechanism()
    }

    fn begin<'py>(&self, py: Python<'py>, host: &str) -> PyResult<(PySaslExchange, Bound<'py, PyBytes>)> {
        let begun = py.detach(|| self.inner.begin(host, pybroker_client::now_ms()));
        let (exchange, token) = begun.map_err(sasl_error)?;
        Ok((PySaslExchange { exchange: Mutex::new(exchange) }, PyBytes::new(py, &token)))
    }
}

/// One exchange in progress.
#[pyclass(frozen, name = "SaslExchange", module = "pybroker._native")]
pub struct PySaslExchange {
    exchange: Mutex<Exchange>,
}

#[pymethods]
impl PySaslExchange {
    fn step<'py>(&self, py: Python<'py>, token: Vec<u8>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let step = py.detach(|| self.exchange.lock().step(&token)).map_err(sasl_error)?;
        Ok(match step {
            Step::Send(token) => Some(PyBytes::new(py, &token)),
            Step::Done => None,
        })
    }

    #[getter]
    fn failure(&self) -> Option<String> {
        self.exchange.lock().failure().map(str::to_owned)
    }
}

fn tls_error(error: TlsError) -> PyErr {
    AuthenticationError::new_err(error.to_string())
}

fn sasl_error(error: SaslError) -> PyErr {
    AuthenticationError::new_err(error.to_string())
}

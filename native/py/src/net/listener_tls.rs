//! Certificates and keys from bytes, and the TLS settings of a listener.

use pybroker_tls::{ClientAuth, KeyMaterial, ServerTls, ServerTlsSettings, TlsError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn refused(error: TlsError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn bytes<'py>(py: Python<'py>, certificates: &[CertificateDer<'_>]) -> Vec<Bound<'py, PyBytes>> {
    certificates.iter().map(|certificate| PyBytes::new(py, certificate)).collect()
}

/// The certificates in a PEM text; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (text))]
pub fn pem_certificates<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    Ok(bytes(py, &pybroker_tls::certificates_of_pem(text).map_err(refused)?))
}

/// The private key in a PEM text; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (text, password))]
pub fn pem_key<'py>(py: Python<'py>, text: &[u8], password: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
    let key = pybroker_tls::key_of_pem(text, password).map_err(refused)?;
    Ok(PyBytes::new(py, key.secret_der()))
}

/// A chain with its key, and the trusted certificates.
type Pkcs12<'py> = (Vec<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>);

/// The content of a PKCS #12 file; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (content, password))]
pub fn read_pkcs12<'py>(py: Python<'py>, content: &[u8], password: &str) -> PyResult<Pkcs12<'py>> {
    let found = pybroker_tls::read_pkcs12(content, password).map_err(refused)?;
    let (chain, key) = match &found.identity {
        Some(KeyMaterial { chain, key }) => (bytes(py, chain), Some(PyBytes::new(py, key.secret_der()))),
        None => (Vec::new(), None),
    };
    Ok((chain, key, bytes(py, &found.certificates)))
}

/// The state shared by all connections of a listener; see `_native.pyi`.
#[pyclass(frozen, name = "ServerTls", module = "pybroker._native")]
pub struct PyServerTls {
    pub inner: ServerTls,
}

#[pymethods]
impl PyServerTls {
    #[new]
    #[pyo3(signature = (*, chain, key, trusted, client_auth, protocols, cipher_suites))]
    fn new(
        chain: Vec<Vec<u8>>,
        key: Vec<u8>,
        trusted: Vec<Vec<u8>>,
        client_auth: &str,
        protocols: Vec<String>,
        cipher_suites: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let client_auth = match client_auth {
            "none" => ClientAuth::None,
            "requested" => ClientAuth::Requested,
            "required" => ClientAuth::Required,
            other => return Err(PyValueError::new_err(format!("client_auth is {other:?}"))),
        };
        let der = |certificates: Vec<Vec<u8>>| certificates.into_iter().map(CertificateDer::from).collect();
        let key = PrivateKeyDer::try_from(key).map_err(PyValueError::new_err)?;
        let identity = KeyMaterial { chain: der(chain), key };
        let settings = ServerTlsSettings { identity, trusted: der(trusted), client_auth, protocols, cipher_suites };
        Ok(Self { inner: ServerTls::new(settings).map_err(refused)? })
    }
}

/// Registers the classes and functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<crate::net::events::PyPeerCertificate>()?;
    m.add_class::<PyServerTls>()?;
    m.add_function(wrap_pyfunction!(pem_certificates, m)?)?;
    m.add_function(wrap_pyfunction!(pem_key, m)?)?;
    m.add_function(wrap_pyfunction!(read_pkcs12, m)?)?;
    Ok(())
}

"""The gateway of `security` to Rust: parses certificates and keys, and creates a listener's TLS object."""

from __future__ import annotations

from pybroker._native import ServerTls, pem_certificates, pem_key, read_pkcs12

__all__ = ["ServerTls", "pem_certificates", "pem_key", "read_pkcs12"]

"""The gateway of `security` to Rust: certificates and keys from bytes, and what a listener's TLS is made of."""

from __future__ import annotations

from pybroker._native import ServerTls, pem_certificates, pem_key, read_pkcs12

__all__ = ["ServerTls", "pem_certificates", "pem_key", "read_pkcs12"]

"""The formulas of SCRAM, as RFC 5802 section 3 has them.

    SaltedPassword  = Hi(password, salt, iterations)           (PBKDF2 with HMAC)
    ClientKey       = HMAC(SaltedPassword, "Client Key")       StoredKey = H(ClientKey)
    ServerKey       = HMAC(SaltedPassword, "Server Key")
    ClientSignature = HMAC(StoredKey, AuthMessage)             ClientProof = ClientKey XOR ClientSignature
    ServerSignature = HMAC(ServerKey, AuthMessage)

Owns these formulas. Must not know messages, or where credentials are stored. `salted_password` takes milliseconds by
design: it must not run on the loop.

Source: RFC 5802, RFC 7677, Kafka's ScramFormatter.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.security.scram_mechanisms import ScramMechanism


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password: computes `iterations` hashes, so not for the loop."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def stored_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key by which a broker verifies a client."""
    return hashlib.new(mechanism.digest, hmac.digest(salted, b"Client Key", mechanism.digest)).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key by which a client verifies a broker."""
    return hmac.digest(salted, b"Server Key", mechanism.digest)


def client_is_right(mechanism: ScramMechanism, stored: bytes, auth_message: bytes, proof: bytes) -> bool:
    """Return whether a proof matches the stored key, in a time independent of both."""
    signature = hmac.digest(stored, auth_message, mechanism.digest)
    if len(proof) != len(signature):
        return False
    key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    return hmac.compare_digest(hashlib.new(mechanism.digest, key).digest(), stored)


def server_signature(mechanism: ScramMechanism, key: bytes, auth_message: bytes) -> bytes:
    """Return the proof for the client that the broker knows its key."""
    return hmac.digest(key, auth_message, mechanism.digest)


def client_proof(mechanism: ScramMechanism, salted: bytes, auth_message: bytes) -> bytes:
    """Return the client's proof that it knows its password."""
    key = hmac.digest(salted, b"Client Key", mechanism.digest)
    signature = hmac.digest(hashlib.new(mechanism.digest, key).digest(), auth_message, mechanism.digest)
    return bytes(one ^ other for one, other in zip(key, signature, strict=True))

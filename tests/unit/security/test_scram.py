"""The formulas of SCRAM, held against the example of RFC 7677."""

from __future__ import annotations

from base64 import b64decode, b64encode

from pybroker.security.scram import (
    client_is_right,
    client_proof,
    salted_password,
    server_key,
    server_signature,
    stored_key,
)
from pybroker.security.scram_mechanisms import SCRAM_SHA_256

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)


def test_the_example_of_the_rfc() -> None:
    salted = salted_password(SCRAM_SHA_256, "pencil", SALT, 4096)
    proof = client_proof(SCRAM_SHA_256, salted, AUTH_MESSAGE)
    assert b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    signature = server_signature(SCRAM_SHA_256, server_key(SCRAM_SHA_256, salted), AUTH_MESSAGE)
    assert b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    stored = stored_key(SCRAM_SHA_256, salted)
    assert client_is_right(SCRAM_SHA_256, stored, AUTH_MESSAGE, proof)
    assert not client_is_right(SCRAM_SHA_256, stored, AUTH_MESSAGE + b" ", proof)
    assert not client_is_right(SCRAM_SHA_256, stored, AUTH_MESSAGE, proof[:-1])

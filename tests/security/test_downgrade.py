"""What a client offers is not what it gets: another mechanism, another protocol, an older version, half a token."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
from pathlib import Path

import pytest

from tests.conformance.sasl_clients import (
    ILLEGAL_SASL_STATE,
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    handshake,
    scram_last,
    token,
)
from tests.security.conftest import ours
from tests.support.certificates import Authority
from tests.support.secured_server import MECHANISMS, PASSWORD, At
from tests.support.wire import Wire, header

PLAIN_PROOF = f"\0alice\0{PASSWORD}".encode()
FIRST = "n,,n=alice,r=abcdef"


@pytest.fixture
def wire(at: At) -> Wire:
    return Wire(at("SASL_PLAINTEXT"))


@pytest.mark.parametrize("name", ["", "plain", "PLAIN ", "ANONYMOUS", "EXTERNAL", "SCRAM-SHA-1", "SCRAM-SHA-256-PLUS"])
def test_a_mechanism_that_is_not_offered_is_refused(wire: Wire, name: str) -> None:
    with wire:
        response = handshake(wire, name)
        assert response.error_code == UNSUPPORTED_SASL_MECHANISM
        assert sorted(response.mechanisms) == sorted(MECHANISMS)
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_the_proof_of_another_mechanism_is_none(wire: Wire, mechanism: str) -> None:
    with wire:
        handshake(wire, mechanism)
        assert token(wire, PLAIN_PROOF).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


def test_the_weaker_hash_proves_nothing_to_the_stronger(wire: Wire) -> None:
    with wire:
        handshake(wire, "SCRAM-SHA-512")
        challenge = token(wire, FIRST.encode()).auth_bytes.decode()
        proof = scram_last("SCRAM-SHA-256", PASSWORD, FIRST, challenge)
        with contextlib.suppress(ConnectionError):  # Kafka closes without an answer: the proof has another length
            assert token(wire, proof).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize("keeps", ["all", "proof", "nonce"])
def test_an_exchange_that_somebody_has_recorded_proves_nothing_again(at: At, mechanism: str, keeps: str) -> None:
    """Each exchange has a random part of the server's, which the proof signs (RFC 5802)."""
    with Wire(at("SASL_PLAINTEXT")) as recorded:
        handshake(recorded, mechanism)
        challenge = token(recorded, FIRST.encode()).auth_bytes.decode()
        last = scram_last(mechanism, PASSWORD, FIRST, challenge)
        assert token(recorded, last).error_code == NONE
    with Wire(at("SASL_PLAINTEXT")) as replayed:
        handshake(replayed, mechanism)
        fresh = token(replayed, FIRST.encode()).auth_bytes.decode()
        nonces = [text.partition(",")[0].removeprefix("r=") for text in (challenge, fresh)]
        assert nonces[0] != nonces[1]
        if keeps == "proof":  # with the server's new part in the place of the old one
            last = last.replace(nonces[0].encode(), nonces[1].encode())
        if keeps == "nonce":  # with the password, and the old exchange's random parts
            last = scram_last(mechanism, PASSWORD, FIRST, fresh.replace(nonces[1], nonces[0]))
        with contextlib.suppress(ConnectionError):
            assert token(replayed, last).error_code == SASL_AUTHENTICATION_FAILED
        assert replayed.is_closed_by_peer()


def test_a_mechanism_is_not_changed_during_an_exchange(wire: Wire) -> None:
    with wire:
        handshake(wire, "SCRAM-SHA-256")
        assert token(wire, FIRST.encode()).error_code == NONE
        with contextlib.suppress(ConnectionError):
            assert handshake(wire, "PLAIN").error_code == ILLEGAL_SASL_STATE
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize(
    "first",
    [
        "",
        "n",
        "n,",
        "n,,",
        "n,,n=",
        "n,,n=alice",
        "n,,n=alice,r=",
        "n,,r=abc",
        "y",
        "p=tls-unique,,n=alice,r=abc",
        "n,,n=al=ice,r=a",
    ],
)
def test_half_a_first_message_is_refused(wire: Wire, first: str) -> None:
    with wire:
        handshake(wire, "SCRAM-SHA-256")
        assert token(wire, first.encode()).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("cut", [0, 1, 8, -1])
def test_half_a_last_message_is_refused(wire: Wire, cut: int) -> None:
    with wire:
        handshake(wire, "SCRAM-SHA-256")
        challenge = token(wire, FIRST.encode()).auth_bytes.decode()
        whole = scram_last("SCRAM-SHA-256", PASSWORD, FIRST, challenge)
        with contextlib.suppress(ConnectionError):
            assert token(wire, whole[:cut]).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize(
    "proof",
    [b"\0", b"\0\0", b"\0alice\0", b"\0\0" + PASSWORD.encode(), b"alice\0" + PASSWORD.encode(), PLAIN_PROOF[:-1]],
    ids=["a zero", "two zeros", "no password", "no name", "two parts", "a letter less"],
)
def test_half_a_password_is_refused(wire: Wire, proof: bytes) -> None:
    with wire:
        handshake(wire, "PLAIN")
        assert token(wire, proof).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


def test_nobody_acts_for_another(wire: Wire) -> None:
    """The authorization id is to be the user's own name (RFC 4616)."""
    with wire:
        handshake(wire, "PLAIN")
        assert token(wire, b"admin" + PLAIN_PROOF).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


def test_a_token_that_announces_more_than_there_is_is_answered_nothing(wire: Wire) -> None:
    with wire:
        handshake(wire, "PLAIN")
        wire.send_frame(header(36, 0, 9) + struct.pack(">i", 1 << 30) + PLAIN_PROOF)
        assert wire.is_closed_by_peer()


def test_a_token_that_is_larger_than_may_be_is_answered_nothing(wire: Wire) -> None:
    with wire:
        handshake(wire, "PLAIN")
        wire.send_bytes(struct.pack(">i", 600_000))
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_no_request_is_answered_in_plaintext_where_tls_is_asked_for(at: At, protocol: str) -> None:
    with Wire(at(protocol)) as wire:
        wire.send_frame(header(18, 0, 7))
        with contextlib.suppress(ConnectionError):
            # An alert of TLS at most.
            assert wire.socket.recv(100)[:1] in (b"", b"\x15")
        assert wire.is_closed_by_peer()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_older_versions_of_tls_are_not_spoken(at: At, version: ssl.TLSVersion) -> None:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.minimum_version = made.maximum_version = version
    made.set_ciphers("ALL:@SECLEVEL=0")
    assert not shakes_hands(at("SASL_SSL"), made)


@pytest.mark.parametrize("suites", ["NULL", "aNULL", "kRSA"])
def test_weak_suites_are_not_spoken(at: At, suites: str) -> None:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(f"{suites}:@SECLEVEL=0")
    assert not shakes_hands(at("SASL_SSL"), made)


def shakes_hands(address: str, made: ssl.SSLContext) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as plain:
        try:
            made.wrap_socket(plain).close()
        except (ssl.SSLError, ConnectionError):
            return False
    return True


def test_no_handshake_follows_another_on_one_connection(at: At, authority: Authority, tmp_path: Path) -> None:
    """Renegotiation of TLS 1.2 is refused, and nothing is answered on a connection that has asked for it and gone."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not on the search path: install it (Debian: apt-get install openssl)")
    trusted = authority.write(tmp_path / "authority.pem")
    words = [openssl, "s_client", "-connect", at("SASL_SSL"), "-tls1_2", "-CAfile", str(trusted)]
    done = subprocess.run(words, input=b"R\n", capture_output=True, timeout=60, check=False)
    assert b"Verify return code: 0" in done.stdout
    assert b"RENEGOTIATING" in done.stderr + done.stdout
    assert done.stderr.count(b"verify return:1") + done.stdout.count(b"verify return:1") <= 2, "one handshake's"


@ours
def test_a_frame_behind_a_refused_mechanism_is_not_read(wire: Wire) -> None:
    with wire:
        wire.send_bytes(frames(17, 1, b"\0\x03ABC") + frames(36, 0, struct.pack(">i", len(PLAIN_PROOF)) + PLAIN_PROOF))
        response = wire.read_frame()
        assert struct.unpack_from(">ih", response) == (1, UNSUPPORTED_SASL_MECHANISM)
        assert wire.is_closed_by_peer()


def frames(key: int, version: int, body: bytes) -> bytes:
    whole = header(key, version, 1) + body
    return struct.pack(">i", len(whole)) + whole

"""What reads bytes of who has not proved who it is: a value or its own refusal, whatever the bytes, in linear time."""

from __future__ import annotations

import contextlib
import time
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybroker.config.security.jaas import JaasError, parse_jaas
from pybroker.metadata.image import ScramCredential
from pybroker.security.distinguished_name import CertificateError, subject_of, valid_until
from pybroker.security.principal_mapping import MappingError, NoRuleError, map_name, parse_rules
from pybroker.security.sasl.plain import PlainExchange
from pybroker.security.sasl.scram import Decoys, ScramExchange
from pybroker.security.sasl.steps import Challenge, Proved, Refused
from pybroker.security.scram_mechanisms import SCRAM_BY_NAME
from tests.support.certificates import Authority

USERS = {"alice": ScramCredential(salt=b"0" * 26, stored_key=bytes(32), server_key=bytes(32), iterations=4096)}
CERTIFICATE = Authority().sign("alice").der
SECONDS = 2.0
"""Of this thread on a processor, for what takes milliseconds where the time is linear."""

first_messages = st.one_of(
    st.binary(max_size=200),
    st.text(alphabet="n,=yparm2CD3E\0\u00e4", max_size=60).map(str.encode),
    st.builds(lambda name, nonce: f"n,,n={name},r={nonce}".encode(), st.text(max_size=20), st.text(max_size=20)),
)
last_messages = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda channel, nonce, proof: f"c={channel},r={nonce},p={proof}".encode(),
        st.sampled_from(["biws", "eSws", "=", ""]),
        st.text(alphabet="abcBROKER", max_size=12),
        st.one_of(st.binary(max_size=70).map(lambda proof: b64encode(proof).decode()), st.text(max_size=20)),
    ),
)


@given(first_messages, last_messages)
def test_scram_lets_nobody_in_by_chance(first: bytes, last: bytes) -> None:
    exchange = ScramExchange(SCRAM_BY_NAME["SCRAM-SHA-256"], USERS, "BROKER", Decoys())
    step = exchange.step(first)
    assert isinstance(step, Challenge | Refused)
    if isinstance(step, Challenge):
        assert isinstance(exchange.step(last), Refused)


@given(st.one_of(st.binary(max_size=100), st.text(alphabet="\0alice secret", max_size=30).map(str.encode)))
def test_plain_lets_in_who_sends_the_password_and_nobody_else(token: bytes) -> None:
    step = PlainExchange({"alice": "secret"}).step(token)
    assert isinstance(step, Proved) == (token in (b"\0alice\0secret", b"alice\0alice\0secret"))


@given(st.integers(0, len(CERTIFICATE) - 1), st.integers(0, 255), st.integers(0, len(CERTIFICATE)))
def test_a_damaged_certificate_is_read_or_refused(at: int, byte: int, end: int) -> None:
    damaged = (CERTIFICATE[:at] + bytes([byte]) + CERTIFICATE[at + 1 :])[:end]
    for read in (subject_of, valid_until):
        with contextlib.suppress(CertificateError):
            assert read(damaged) is not None


@given(st.binary(max_size=300))
def test_bytes_that_are_no_certificate_are_refused(der: bytes) -> None:
    for read in (subject_of, valid_until):
        with pytest.raises(CertificateError):
            read(der)


@given(st.text(alphabet='LoginModule required;="\\x0789\n/*#', max_size=80))
def test_a_text_of_jaas_is_read_or_refused(text: str) -> None:
    try:
        modules = parse_jaas(text)
    except JaasError:
        return
    assert modules


@given(st.text(alphabet="RULE:^CN=(.*)$/1LU,DEFAULT \\", max_size=60), st.text(max_size=60))
def test_rules_are_read_or_refused_and_map_or_do_not(text: str, name: str) -> None:
    try:
        rules = parse_rules(text)
    except MappingError:
        return
    with contextlib.suppress(NoRuleError):
        assert isinstance(map_name(rules, name), str)


def test_a_name_that_no_rule_is_for_is_one_line_of_the_log() -> None:
    with pytest.raises(NoRuleError) as raised:
        map_name(parse_rules("RULE:^CN=bob$/bob/"), "CN=alice\nPrincipal = User:admin is Allowed")
    assert "\n" not in str(raised.value)


def certificate_of(subject: bytes) -> bytes:
    """What stands around a subject."""

    def value(tag: int, content: bytes) -> bytes:
        return bytes([tag, 0x84]) + len(content).to_bytes(4, "big") + content

    times = value(0x30, value(0x17, b"300101000000Z") * 2)
    signed = value(0x02, b"\1") + value(0x30, b"") * 2 + times + value(0x30, subject)
    return value(0x30, value(0x30, signed))


HOSTILE = {
    "a type of many bytes": b"\x31\x83\x01\x00\x0a\x30\x83\x01\x00\x05\x06\x82\xff\xff"
    + b"\xff" * 65_534
    + b"\1\x0c\x00",
    "many parts": b"\x31\x09\x30\x07\x06\x03\x55\x04\x03\x0c\x00" * 6000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_long_subject_takes_no_long_time(kind: str) -> None:
    began = time.thread_time()
    with contextlib.suppress(CertificateError):
        subject_of(certificate_of(HOSTILE[kind]))
    assert time.thread_time() - began < SECONDS


@pytest.mark.parametrize(
    "message",
    [
        "n,,n=" + "=2C" * 2700,
        "n,,n=a,r=b" + ",a=b" * 2000,
        "n,a=" + "x" * 8000,
        "n,,n=a,r=" + "!" * 8000 + "\0",
        "n,,n=a,r=b" + ",aaaa" * 1600,
    ],
    ids=lambda message: message[:12],
)
def test_a_long_message_takes_no_long_time(message: str) -> None:
    began = time.thread_time()
    for _ in range(10):
        exchange = ScramExchange(SCRAM_BY_NAME["SCRAM-SHA-512"], USERS, "BROKER", Decoys())
        exchange.step(message.encode())
        exchange.step(b"c=biws,r=bBROKER" + b",p=a" * 2000 + b"\0")
    assert time.thread_time() - began < SECONDS


def test_a_pattern_that_others_would_try_for_ever_takes_no_long_time() -> None:
    rules = parse_rules("RULE:^CN=(a+)+$/$1/,DEFAULT")
    began = time.thread_time()
    assert map_name(rules, "CN=" + "a" * 5000 + "!").endswith("!")
    assert time.thread_time() - began < SECONDS

"""Distinguished names are written as Java writes them, and read no further than a certificate goes."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from pybroker.security.distinguished_name import CertificateError, subject_of, valid_until
from tests.support.certificates import DAY, Authority

AUTHORITY = Authority()
ALICE = AUTHORITY.sign("alice").der


def subject(*attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    name = x509.Name([x509.NameAttribute(kind, text) for kind, text in attributes])
    return subject_of(AUTHORITY.sign(name).der)


def test_the_last_part_comes_first() -> None:
    parts = ((NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Example"), (NameOID.COMMON_NAME, "alice"))
    assert subject(*parts) == "CN=alice,O=Example,C=DE"


def test_a_sign_that_has_a_meaning_is_escaped() -> None:
    assert subject((NameOID.COMMON_NAME, 'a,b+c"d\\e<f>;=#')) == 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>\\;\\=\\#'
    assert subject((NameOID.COMMON_NAME, " alice  ")) == "CN=\\ alice\\ \\ "


def test_a_type_without_a_keyword_is_its_number_and_its_value_hexadecimal() -> None:
    assert subject((NameOID.EMAIL_ADDRESS, "a@b")) == "1.2.840.113549.1.9.1=#1603614062"


def test_the_end_of_validity_is_read() -> None:
    until = valid_until(AUTHORITY.sign("alice", until=3 * DAY).der)
    assert abs(until - datetime.now(UTC) - 3 * DAY) < timedelta(minutes=1)


@given(st.data())
def test_bytes_that_are_no_certificate_are_refused(data: st.DataObject) -> None:
    whole = ALICE
    with pytest.raises(CertificateError):
        subject_of(whole[: data.draw(st.integers(0, len(whole) // 2))])
    mangled = bytearray(whole)
    mangled[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CertificateError):
        subject_of(bytes(mangled))
        valid_until(bytes(mangled))

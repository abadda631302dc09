from __future__ import annotations

from pybroker.security.principals import ANONYMOUS, Principal


def test_a_principal_reads_as_in_kafkas_acls() -> None:
    assert str(Principal("User", "alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"

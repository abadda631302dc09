"""One server for the claims about attackers; `PYBROKER_CONFORMANCE_PEER=kafka` runs them against Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import AGAINST_KAFKA
from tests.support.certificates import Authority
from tests.support.secured_server import At, secured_server

RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Only the test itself uses the plain listener.
    "super.users": "User:ANONYMOUS;User:CN=admin,O=Real;User:ruled",
    "ssl.principal.mapping.rules": "RULE:^CN=(.*?),OU=Services,O=Real$/$1/L,DEFAULT",
    "listener.name.ssl.ssl.client.auth": "required",
    "connection.failed.authentication.delay.ms": "0",
}


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The certificate authority that the server trusts."""
    return Authority()


@pytest.fixture(scope="session")
def at(authority: Authority) -> Iterator[At]:
    """The address of a protocol's listener. SSL clients need a certificate, and only ACLs grant permissions."""
    with secured_server(authority, RIGHTS, is_kafka=AGAINST_KAFKA) as found:
        yield found


ours = pytest.mark.skipif(AGAINST_KAFKA, reason="a claim about what Apache Kafka does not have, or does otherwise")

"""One server for the claims about attackers; `PYBROKER_CONFORMANCE_PEER=kafka` runs them against Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import AGAINST_KAFKA
from tests.support.certificates import Authority
from tests.support.secured_server import At, secured_server

RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # What comes by the plain listener is the test itself.
    "super.users": "User:ANONYMOUS;User:CN=admin,O=Real;User:ruled",
    "ssl.principal.mapping.rules": "RULE:^CN=(.*?),OU=Services,O=Real$/$1/L,DEFAULT",
    "listener.name.ssl.ssl.client.auth": "required",
    "connection.failed.authentication.delay.ms": "0",
}


@pytest.fixture(scope="session")
def authority() -> Authority:
    """Whom the server believes."""
    return Authority()


@pytest.fixture(scope="session")
def at(authority: Authority) -> Iterator[At]:
    """The address of a protocol's listener: clients of SSL show a certificate, and rights come from entries alone."""
    with secured_server(authority, RIGHTS, is_kafka=AGAINST_KAFKA) as found:
        yield found


ours = pytest.mark.skipif(AGAINST_KAFKA, reason="a claim about what Apache Kafka does not have, or does otherwise")

"""What a broker says of its own registration."""

from __future__ import annotations

import pytest

from pybroker.broker.own_registration import OwnRegistration
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, ClusterImage, MetadataImage


def test_a_broker_that_is_unregistered_while_it_runs_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    broker = BrokerRegistration(1, b"", 5, listeners={}, security_protocols={})
    registered = MetadataImage(cluster=ClusterImage(brokers={1: broker}))
    own, delta = OwnRegistration(1), MetadataDelta(EMPTY_IMAGE)
    for image in (EMPTY_IMAGE, registered, registered):
        own.publish(delta, image)
    assert caplog.messages == []
    for image in (EMPTY_IMAGE, EMPTY_IMAGE):
        own.publish(delta, image)
    (reported,) = caplog.messages
    assert reported.startswith("Broker 1 was unregistered while it runs")

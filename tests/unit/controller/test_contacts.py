"""Tests of `pybroker.controller.contacts`."""

from __future__ import annotations

import msgspec

from pybroker.controller.contacts import Contacts
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, MetadataImage


def image_of(*, unfenced: set[int], fenced: set[int]) -> MetadataImage:
    """An image with these brokers."""
    brokers = {
        one: BrokerRegistration(
            id=one, epoch=one, incarnation_id=bytes(16), listeners={}, security_protocols={}, fenced=one in fenced
        )
        for one in unfenced | fenced
    }
    return msgspec.structs.replace(EMPTY_IMAGE, cluster=msgspec.structs.replace(EMPTY_IMAGE.cluster, brokers=brokers))


def test_a_broker_is_alive_from_its_first_heartbeat_until_its_connection_ends_or_it_is_fenced() -> None:
    contacts, gone = Contacts(), set[int]()
    contacts.begin(100)
    image = image_of(unfenced={1, 2, 3}, fenced={4})
    assert contacts.alive(image, gone.__contains__) == set()
    assert [contacts.note(one) for one in (1, 2, 4, 1, 9)] == [True, True, True, False, True]
    assert contacts.alive(image, gone.__contains__) == {1, 2}
    gone.add(2)
    assert contacts.alive(image, gone.__contains__) == {1}
    assert contacts.alive(image_of(unfenced={2}, fenced={1}), gone.__contains__) == set()


def test_another_term_begins_without_contacts() -> None:
    contacts = Contacts()
    contacts.begin(100)
    contacts.note(1)
    contacts.begin(200)
    assert (contacts.since, contacts.alive(image_of(unfenced={1}, fenced=set()), lambda _: False)) == (200, set())
    assert contacts.note(1)

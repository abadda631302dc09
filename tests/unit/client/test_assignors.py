"""Assignors by the names that configuration files give them."""

from __future__ import annotations

import pytest

from pybroker.client.assignors import CooperativeStickyAssignor, RangeAssignor, make_assignors
from pybroker.client.errors import SettingError


def test_assignors_are_known_by_protocol_name_and_by_class_name() -> None:
    made = make_assignors("range, org.apache.kafka.clients.consumer.CooperativeStickyAssignor")
    assert [type(assignor) for assignor in made] == [RangeAssignor, CooperativeStickyAssignor]


def test_an_object_with_an_assignors_face_is_taken_as_it_is() -> None:
    own = RangeAssignor()
    assert make_assignors(["sticky", own])[1] is own


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"=fair: known are range, roundrobin, sticky, cooperative-sticky"):
        make_assignors("fair")

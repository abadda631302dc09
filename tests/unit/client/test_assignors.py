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
    with pytest.raises(SettingError, match=r"=fair: expected one of range, roundrobin, sticky, cooperative-sticky"):
        make_assignors("fair")


def test_a_class_is_taken_for_its_object() -> None:
    (made,) = make_assignors(RangeAssignor)
    assert isinstance(made, RangeAssignor)


def test_two_assignors_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match="two assignors have the same name: range, range"):
        make_assignors(["range", RangeAssignor])


def test_what_is_no_assignor_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(
        SettingError, match="is not an assignor: add name, cooperative, user_data, assign, on_assignment"
    ):
        make_assignors([object()])  # type: ignore[list-item]

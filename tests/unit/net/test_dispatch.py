"""Which requests are served, by the listener that they come from."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from pybroker.net.dispatch import Dispatch, RefusedError


class Api(NamedTuple):
    name: str
    min_version: int = 0
    max_version: int = 2


class Event(NamedTuple):
    api_key: int
    api_version: int
    listener: str

    @property
    def api(self) -> int:
        return self.api_key << 16 | self.api_version


CLIENTS, BROKERS = Api("of brokers"), Api("of controllers")


def dispatch() -> Dispatch:
    of_brokers: Any = {1: CLIENTS}
    of_controllers: Any = {1: BROKERS, 62: BROKERS}
    return Dispatch(of_brokers, of_controllers, frozenset({"CONTROLLER"}))


def event(key: int, version: int, listener: str) -> Any:
    return Event(key, version, listener)


def test_a_listeners_role_says_which_handler_of_a_key_is_meant() -> None:
    assert dispatch().find(event(1, 0, "PLAINTEXT")) == (CLIENTS, True)
    assert dispatch().find(event(1, 3, "CONTROLLER")) == (BROKERS, False)


def test_what_controllers_alone_serve_is_refused_to_clients() -> None:
    assert dispatch().find(event(62, 0, "CONTROLLER")) == (BROKERS, True)
    with pytest.raises(RefusedError, match="API key 62 is not served on listener PLAINTEXT"):
        dispatch().find(event(62, 0, "PLAINTEXT"))


def test_what_is_looked_up_for_one_role_is_not_taken_for_the_other() -> None:
    keys = {dispatch().key(event(key, 1, name)) for key in (1, 62) for name in ("PLAINTEXT", "SSL", "CONTROLLER")}
    assert len(keys) == 4

"""A principal builder of the user's: what is loaded, what it is asked, and what of its answers is taken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.dynamic import dynamic_fault
from pybroker.config.errors import ConfigError
from pybroker.security.principal_builder import DEFAULT, BuilderError, Proof, load
from pybroker.security.principals import Principal

HERE = f"{__name__}:Builder"
PROOF = Proof("IN", "192.0.2.1", "PLAIN", "alice")


class Builder:
    """Says what its node's properties say, or raises it."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self.reports = properties["says"]

    def build(self, proof: Proof) -> Any:
        if isinstance(self.reports, Exception):
            raise self.reports
        return self.reports(proof) if callable(self.reports) else self.reports


def loaded(reports: Any) -> Callable[[Proof], Principal]:
    build = load(HERE, {"says": reports})
    assert build is not None
    return build


def test_kafkas_default_is_no_class() -> None:
    assert load(DEFAULT, {}) is None


def test_a_builder_sees_the_proof_and_says_who_it_is() -> None:
    build = loaded(lambda proof: f"Group:{proof.listener}/{proof.host}/{proof.mechanism}/{proof.name}")
    assert build(PROOF) == Principal("Group", "IN/192.0.2.1/PLAIN/alice")


def test_a_name_may_have_colons() -> None:
    assert loaded("User:urn:alice")(PROOF) == Principal("User", "urn:alice")


@pytest.mark.parametrize("reports", [None, "", "alice", ":alice", "User:", b"User:alice", ("User", "alice")], ids=repr)
def test_what_is_no_principal_is_refused(reports: object) -> None:
    with pytest.raises(BuilderError, match="expected a string such as User:alice"):
        loaded(reports)(PROOF)


def test_what_a_builder_raises_is_logged_and_refused(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(BuilderError, match=rf"{HERE} failed: KeyError$"):
        loaded(KeyError("secret"))(PROOF)
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.exc_info is not None


@pytest.mark.parametrize("name", ["no.such.Class", "module", "a:b:c", "", ":Class"])
def test_what_names_no_class_is_refused_with_the_setting(name: str) -> None:
    with pytest.raises(ConfigError, match=r"principal\.builder\.class.*module:Class"):
        BrokerConfig({"principal.builder.class": name})


def test_one_of_a_single_listener_is_refused() -> None:
    with pytest.raises(ConfigError, match="which applies to all listeners"):
        BrokerConfig({"listener.name.plaintext.principal.builder.class": HERE})


@pytest.mark.parametrize("name", ["principal.builder.class", "listener.name.in.principal.builder.class"])
def test_it_is_not_changed_while_a_broker_runs(name: str) -> None:
    config = BrokerConfig({})
    fault = dynamic_fault(config, config, {name: DEFAULT}, is_own=True)
    assert fault is not None
    assert ("read only at a start" if name == "principal.builder.class" else "of a single listener") in fault

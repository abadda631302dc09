from __future__ import annotations

import pytest

from pybroker.config.errors import ConfigError
from pybroker.config.quorum import QuorumVoter, parse_bootstrap_servers, parse_voter, parse_voters


def test_voters_are_listed_by_id_and_the_last_of_an_id_speaks() -> None:
    voters = parse_voters(("3@c:9093", "1@a:9093", "3@d:9094"))
    assert voters == (QuorumVoter(1, "a", 9093), QuorumVoter(3, "d", 9094))


@pytest.mark.parametrize(
    ("entry", "voter"),
    [
        ("1@localhost:9093", QuorumVoter(1, "localhost", 9093)),
        ("2@[::1]:9093", QuorumVoter(2, "::1", 9093)),
        ("0@10.0.0.1:1", QuorumVoter(0, "10.0.0.1", 1)),
    ],
)
def test_a_voter_reads_as_it_is_written(entry: str, voter: QuorumVoter) -> None:
    assert parse_voter(entry) == voter
    assert str(voter) == entry


FORM = "Each entry should be in the form `{id}@{host}:{port}`."


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("h:1", f"Invalid configuration value for controller.quorum.voters. {FORM}"),
        ("", f"Invalid configuration value for controller.quorum.voters. {FORM}"),
        ("x@h:1", "Failed to parse voter ID as an integer from x"),
        ("1@h", f"Failed to parse host name from entry 1@h for the configuration controller.quorum.voters. {FORM}"),
        ("1@h:x", f"Failed to parse host name from entry 1@h:x for the configuration controller.quorum.voters. {FORM}"),
        ("1@0.0.0.0:9093", "Host string (0.0.0.0) is not routeable"),
        ("1@h:0", "controller.quorum.voters=1@h:0: expected a port from 1 to 65535"),
        ("1@h:65536", "controller.quorum.voters=1@h:65536: expected a port from 1 to 65535"),
        ("1@:1", "controller.quorum.voters=1@:1: expected a host that the other nodes can connect to"),
        ("-1@h:1", "controller.quorum.voters=-1@h:1: expected a node id of 0 to 2147483647"),
        ("2147483648@h:1", "controller.quorum.voters=2147483648@h:1: expected a node id of 0 to 2147483647"),
    ],
)
def test_what_is_no_voter_is_refused(entry: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_voter(entry)
    assert str(refused.value) == sentence


def test_a_bootstrap_server_is_kept_once() -> None:
    assert parse_bootstrap_servers(("h:1", "[::1]:2", "h:1")) == (("h", 1), ("::1", 2))


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (
            "h",
            (
                "Failed to parse host name from h for the configuration controller.quorum.bootstrap.servers. Each "
                'entry should be in the form "{host}:{port}"'
            ),
        ),
        ("h:0", "controller.quorum.bootstrap.servers=h:0: expected a port from 1 to 65535"),
        (":1", "controller.quorum.bootstrap.servers=:1: expected a host that the other nodes can connect to"),
    ],
)
def test_what_is_no_bootstrap_server_is_refused(entry: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_bootstrap_servers((entry,))
    assert str(refused.value) == sentence

from __future__ import annotations

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.initial_controllers import InitialController, parse_initial_controllers, voters_record
from pybroker.cli.uuids import parse_uuid

ID = "JEXY6aqzQY-32P5TStzaFg"
OTHER_ID = "MvDxzVmcRsaTz33bUuRU6A"


def test_voters_are_read_as_kafka_reads_them() -> None:
    controllers = parse_initial_controllers(f"2@[::1]:9094:{OTHER_ID}, 1@localhost:9093:{ID},")
    assert list(controllers.values()) == [
        InitialController(1, "localhost", 9093, parse_uuid(ID)),
        InitialController(2, "::1", 9094, parse_uuid(OTHER_ID)),
    ]


def test_the_record_has_a_listener_for_each_voter() -> None:
    record = voters_record(parse_initial_controllers(f"1@h:9093:{ID}").values(), "CONTROLLER")
    (voter,) = record.voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, parse_uuid(ID))
    assert [(one.name, one.host, one.port) for one in voter.endpoints] == [("CONTROLLER", "h", 9093)]
    assert voter.kraft_version_feature.max_supported_version == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "No voters given."),
        (",", "No voters given."),
        ("1:h:1", "No @ found in dynamic voter string."),
        (f"x@h:1:{ID}", "Failed to parse node id in dynamic voter string."),
        (f"-1@h:1:{ID}", "Invalid negative node id -1 in dynamic voter string."),
        ("1@h", "No colon following hostname could be found."),
        (f"1@[::1:1:{ID}", "Hostname began with left bracket, but no right bracket was found."),
        ("1@h:1", "No colon following port could be found."),
        (f"1@h:x:{ID}", "Failed to parse port in dynamic voter string."),
        (f"1@h:99999:{ID}", "Invalid port 99999 in dynamic voter string."),
        (f"1@h:0:{ID}", "Invalid port 0 in dynamic voter string."),
        (f"1@:1:{ID}", "Expected a host that the other nodes can dial."),
        ("1@h:1:x", "Failed to parse directory ID in dynamic voter string."),
        ("1@h:1:AAAAAAAAAAAAAAAAAAAAAA", "Directory ID AAAAAAAAAAAAAAAAAAAAAA is reserved."),
        (f"1@h:1:{ID},1@h:2:{OTHER_ID}", "Node id 1 was specified more than once."),
    ],
)
def test_what_is_no_voter_is_refused_with_what_was_given(text: str, sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_initial_controllers(text)
    assert str(refused.value).startswith(sentence)

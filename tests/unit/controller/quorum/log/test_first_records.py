from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.log.bootstrap import read_bootstrap, write_bootstrap
from pybroker.controller.quorum.log.first_records import first_records
from pybroker.metadata.features import INITIAL_LEVELS
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.schema import Message


def levels_of(records: list[Message]) -> dict[str, int]:
    return {one.name: one.feature_level for one in records if isinstance(one, FeatureLevelRecord)}


def write(directory: Path, **levels: int) -> None:
    records = [FeatureLevelRecord(name=name.replace("_", "."), feature_level=level) for name, level in levels.items()]
    write_bootstrap(directory, records, 0)


def test_a_cluster_that_nobody_formatted_begins_with_the_newest_levels(tmp_path: Path) -> None:
    assert levels_of(first_records(read_bootstrap(tmp_path), {})) == INITIAL_LEVELS


def test_it_gets_what_a_newer_version_brings(tmp_path: Path) -> None:
    assert levels_of(first_records(read_bootstrap(tmp_path), {"metadata.version": 25})) == {
        "group.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert first_records(read_bootstrap(tmp_path), INITIAL_LEVELS) == []


def test_a_formatted_cluster_begins_with_what_it_was_formatted_with_and_keeps_to_it(tmp_path: Path) -> None:
    write(tmp_path, metadata_version=21)
    assert levels_of(first_records(read_bootstrap(tmp_path), {})) == {"metadata.version": 21}
    assert first_records(read_bootstrap(tmp_path), {"metadata.version": 21}) == []


def test_records_of_other_kinds_are_taken_as_well(tmp_path: Path) -> None:
    topic = TopicRecord(name="t", topic_id=bytes(15) + b"\x01")
    write_bootstrap(tmp_path, [topic], 0)
    assert first_records(read_bootstrap(tmp_path), {}) == [topic]


def test_a_level_that_cannot_be_honoured_is_refused_with_what_helps(tmp_path: Path) -> None:
    write(tmp_path, metadata_version=31)
    with pytest.raises(MetadataLogError, match=r"metadata.version=31, expected a level from 7 to 30; format .* 4\.3$"):
        first_records(read_bootstrap(tmp_path), {})


def test_a_feature_of_a_part_that_is_not_here_is_left_out_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, metadata_version=25, share_version=1)
    assert levels_of(first_records(read_bootstrap(tmp_path), {})) == {"metadata.version": 25}
    assert "sets feature share.version to level 1, which this version does not know" in caplog.text

"""The tables of features, levels and record versions that were copied from Kafka, against Kafka's own."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.metadata.features import (
    INITIAL_LEVELS,
    KRAFT_VERSION,
    LEFT_OUT,
    METADATA_VERSION,
    RECORD_VERSIONS,
    STREAMS_VERSION,
    SUPPORTED_FEATURES,
)
from pybroker.metadata.metadata_versions import NAMES, level_of
from tests.support import java_oracle

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafkas() -> dict[str, Any]:
    with java_oracle.running("FeatureOracle") as oracle:
        return oracle.query("tables")


def test_levels_of_metadata_version_have_kafkas_names(kafkas: dict[str, Any]) -> None:
    theirs = {one["level"]: one["name"] for one in kafkas["versions"]}
    assert {level: NAMES[level] for level in theirs} == theirs


def test_a_release_stands_for_the_level_that_kafka_takes(kafkas: dict[str, Any]) -> None:
    """Of a release with several levels Kafka takes the last one that is ready for production."""
    last: dict[str, int] = {}
    for one in kafkas["versions"]:
        if one["isProduction"]:
            last[one["name"].partition("-")[0]] = one["level"]
    assert {release: level_of(release) for release in last} == last


def test_features_have_kafkas_names_and_no_level_that_kafka_lacks(kafkas: dict[str, Any]) -> None:
    theirs = kafkas["features"]
    assert SUPPORTED_FEATURES.keys() | LEFT_OUT == theirs.keys() | {METADATA_VERSION}
    for name, (low, high) in SUPPORTED_FEATURES.items():
        if name != METADATA_VERSION:
            assert theirs[name][0] <= low <= high <= theirs[name][1], name
    levels = [one["level"] for one in kafkas["versions"] if one["isProduction"]]
    assert min(levels) <= SUPPORTED_FEATURES[METADATA_VERSION][0]
    assert SUPPORTED_FEATURES[METADATA_VERSION][1] <= max(levels)


def test_records_are_written_in_kafkas_versions_for_a_new_cluster(kafkas: dict[str, Any]) -> None:
    (version,) = [one for one in kafkas["versions"] if one["level"] == INITIAL_LEVELS[METADATA_VERSION]]
    records = [name for name in version if name.endswith("Record")]
    assert len(records) == 4
    assert {name: RECORD_VERSIONS[name] for name in records} == {name: version[name] for name in records}


def test_a_new_cluster_begins_with_the_levels_that_kafka_gives_its_metadata_version(kafkas: dict[str, Any]) -> None:
    (version,) = [one for one in kafkas["versions"] if one["level"] == INITIAL_LEVELS[METADATA_VERSION]]
    # The level of kraft.version is in control records. Kafka enables streams groups with a later metadata.version.
    left_out = {*LEFT_OUT, KRAFT_VERSION, STREAMS_VERSION}
    theirs = {name: level for name, level in version["defaults"].items() if level and name not in left_out}
    assert theirs | {STREAMS_VERSION: 1} == {
        name: level for name, level in INITIAL_LEVELS.items() if name != METADATA_VERSION
    }

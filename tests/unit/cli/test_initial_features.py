from __future__ import annotations

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.initial_features import plan_levels, recorded
from pybroker.metadata.features import INITIAL_LEVELS, SUPPORTED_FEATURES


def test_a_new_cluster_begins_with_what_one_that_nobody_formatted_begins_with() -> None:
    levels = plan_levels(None, [], is_dynamic=False)
    assert set(levels) == set(SUPPORTED_FEATURES)
    assert recorded(levels) == INITIAL_LEVELS


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        ("3.3", {"metadata.version": 7}),
        ("3.9-IV0", {"metadata.version": 21}),
        ("4.0-IV0", {"metadata.version": 22, "group.version": 1}),
        ("4.0-IV2", {"metadata.version": 24, "group.version": 1, "transaction.version": 2}),
        ("4.0", {"metadata.version": 25, "group.version": 1, "transaction.version": 2}),
        (
            "4.3",
            {
                "metadata.version": 30,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "streams.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_a_release_has_its_own_levels(release: str, levels: dict[str, int]) -> None:
    assert recorded(plan_levels(release, [], is_dynamic=False)) == levels


def test_without_a_release_a_cluster_begins_with_what_is_all_there() -> None:
    assert recorded(plan_levels(None, [], is_dynamic=False)) == {
        "metadata.version": 25,
        "group.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_a_feature_that_is_named_has_the_level_that_is_named_last() -> None:
    levels = plan_levels(None, ["group.version=1", "group.version=0"], is_dynamic=False)
    assert "group.version" not in recorded(levels)
    assert recorded(plan_levels(None, ["metadata.version=21"], is_dynamic=False)) == {"metadata.version": 21}


def test_voters_that_may_change_are_kraft_version_1_which_their_own_snapshot_records() -> None:
    levels = plan_levels(None, [], is_dynamic=True)
    assert levels["kraft.version"] == 1
    assert "kraft.version" not in recorded(levels)
    assert plan_levels(None, ["kraft.version=1"], is_dynamic=True) == levels
    assert plan_levels(None, ["kraft.version=0"], is_dynamic=False)["kraft.version"] == 0


@pytest.mark.parametrize(
    ("release", "features", "sentence"),
    [
        (None, ["x=1"], "Unsupported feature: x. Supported features are: eligible.leader.replicas.version, group"),
        (None, ["group.version"], "Can't parse feature=level string group.version: equals sign not found."),
        (None, ["group.version=x"], "Can't parse feature=level string group.version=x: unable to parse x as a short."),
        (None, ["group.version=32768"], "unable to parse 32768 as a short."),
        (None, ["group.version=9"], "No feature:group.version with feature level 9"),
        (None, ["group.version=-1"], "No feature:group.version with feature level -1"),
        (None, ["kraft.version=2"], "No feature:kraft.version with feature level 2"),
        (None, ["kraft.version=1"], "Cannot set kraft.version to 1 unless controller.quorum.voters is empty and one"),
        (
            None,
            ["metadata.version=1"],
            "No MetadataVersion with feature level 1. Valid feature levels are from 7 to 30",
        ),
        ("4.0", ["metadata.version=25"], "Use --release-version instead of --feature metadata.version=X to avoid"),
        ("4.4", [], "Unknown metadata.version '4.4'. Supported metadata.version are: 3.3-IV3, 3.4-IV0, 3.5-IV0,"),
        ("4", [], "Unknown metadata.version '4'."),
        (
            "3.9",
            ["eligible.leader.replicas.version=1"],
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
        ),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(release: str | None, features: list[str], sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        plan_levels(release, features, is_dynamic=False)
    assert sentence in str(refused.value)


def test_voters_that_may_change_are_no_kraft_version_0() -> None:
    with pytest.raises(CommandError, match=r"Cannot set kraft.version to 0 if controller.quorum.voters is empty"):
        plan_levels(None, ["kraft.version=0"], is_dynamic=True)

"""UpdateFeatures: which levels may follow which, and which error is returned where one may not."""

from __future__ import annotations

from typing import Any

import kafka
import pytest

from tests.conformance.conftest import Server, serving
from tests.conformance.test_consumer_groups import heartbeat
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until
from tests.support.wire import Wire

INVALID_UPDATE_VERSION = 95
UNSUPPORTED_VERSION = 35
UPGRADE, SAFE, UNSAFE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "
GROUPS, METADATA = "group.version", "metadata.version"

Update = tuple[str, int, int]


def query(wire: Wire, *updates: Update, version: int = 2, validate_only: bool = True) -> Any:
    """An answer; updates are feature, level and kind, of which version 0 has none."""
    keys = [{"feature": name, "max_version_level": level} for name, level, _ in updates]
    if version == 0:
        return wire.call("UpdateFeatures", 0, timeout_ms=10_000, feature_updates=keys)
    for key, (_, _, kind) in zip(keys, updates, strict=True):
        key["upgrade_type"] = kind
    more = {"timeout_ms": 10_000, "validate_only": validate_only}
    return wire.call("UpdateFeatures", version, feature_updates=keys, **more)


def levels(wire: Wire) -> dict[str, int]:
    """The finalized levels as ApiVersions returns them."""
    response = api_versions(wire)
    return {one.name: one.max_version_level for one in response.finalized_features}


def api_versions(wire: Wire) -> Any:
    return wire.call("ApiVersions", 4, client_software_name="wire", client_software_version="1")


def supported(wire: Wire, name: str) -> tuple[int, int]:
    ((low, high),) = [
        (one.min_version, one.max_version) for one in api_versions(wire).supported_features if one.name == name
    ]
    return low, high


@pytest.mark.parametrize("version", range(3))
def test_what_is_as_it_was_is_no_fault(wire: Wire, version: int) -> None:
    before = levels(wire)
    response = query(wire, (GROUPS, 1, UPGRADE), (METADATA, before[METADATA], UPGRADE), version=version)
    assert (response.throttle_time_ms, response.error_code, response.error_message) == (0, 0, None)
    if version < 2:
        results = [(one.feature, one.error_code, one.error_message) for one in response.results]
        assert results == [(GROUPS, 0, "NONE"), (METADATA, 0, "NONE")]
    assert levels(wire) == before


def test_nothing_asked_is_no_fault(wire: Wire) -> None:
    assert query(wire).error_code == 0


@pytest.mark.parametrize(
    "update", [(GROUPS, 0, SAFE), (GROUPS, 0, UNSAFE), (GROUPS, 1, SAFE), ("kraft.version", 0, SAFE)]
)
def test_a_level_may_fall_where_the_update_says_so(wire: Wire, update: Update) -> None:
    before = levels(wire)
    assert query(wire, update).error_code == 0
    assert levels(wire) == before, "it was only validated"


NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
WRONG: dict[str, tuple[Update, str]] = {
    "down by an upgrade": ((GROUPS, 0, UPGRADE), NO_DOWNGRADE),
    "above what is supported": ((GROUPS, 2, UPGRADE), "Local controller {node} only supports versions 0-1"),
    "below zero": ((GROUPS, -1, UPGRADE), "A feature version cannot be less than 0."),
    "no kind of update": ((GROUPS, 1, 0), "The controller does not support the given upgrade type."),
    "an unknown kind of update": ((GROUPS, 1, 7), "The controller does not support the given upgrade type."),
    "an unknown feature": (("nonsense", 1, UPGRADE), "Local controller {node} does not support this feature."),
    "an unknown feature removed": (("nonsense", 0, SAFE), "Feature nonsense not found."),
    "no name": (("", 1, UPGRADE), "Local controller {node} does not support this feature."),
    "metadata of the future": ((METADATA, 99, UPGRADE), "Local controller {node} only supports versions {low}-{high}"),
    "no metadata": ((METADATA, 0, SAFE), "Local controller {node} only supports versions {low}-{high}"),
    "old metadata by an upgrade": ((METADATA, 7, UPGRADE), NO_DOWNGRADE),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_level_is_refused_with_the_reason(wire: Wire, what: str, version: int) -> None:
    update, words = WRONG[what]
    low, high = supported(wire, METADATA)
    metadata = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    node = wire.call("DescribeQuorum", 1, topics=[metadata]).topics[0].partitions[0].leader_id
    response = query(wire, update, version=version)
    reason = words.format(node=node, low=low, high=high)
    assert response.error_code == INVALID_UPDATE_VERSION
    assert response.error_message == f"{FAILED}Invalid update version {update[1]} for feature {update[0]}. {reason}"
    assert not response.results


def test_version_0_can_only_go_up(wire: Wire) -> None:
    response = wire.call(
        "UpdateFeatures",
        0,
        timeout_ms=10_000,
        feature_updates=[{"feature": GROUPS, "max_version_level": 0, "allow_downgrade": True}],
    )
    assert response.error_code == INVALID_UPDATE_VERSION
    assert response.error_message.endswith(NO_DOWNGRADE)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (SAFE, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_metadata_does_not_fall_over_a_change_of_records(wire: Wire, kind: int, words: str) -> None:
    current = levels(wire)[METADATA]
    response = query(wire, (METADATA, 7, kind))
    assert response.error_code == INVALID_UPDATE_VERSION
    assert response.error_message == f"{FAILED}Unsupported metadata.version downgrade from {current} to 7. {words}"


def test_one_fault_refuses_all(wire: Wire) -> None:
    before = levels(wire)
    response = query(wire, (GROUPS, 0, SAFE), ("nonsense", 1, UPGRADE), validate_only=False)
    assert response.error_code == INVALID_UPDATE_VERSION
    assert levels(wire) == before


def test_a_removed_feature_is_not_returned_and_what_it_stands_for_is_refused_until_it_is_back() -> None:
    with serving() as server, Wire(server.bootstrap_servers) as wire:
        before = api_versions(wire)
        assert query(wire, (GROUPS, 0, SAFE), validate_only=False).error_code == 0
        wait_until(lambda: GROUPS not in levels(wire), within=60, what="the feature is removed")
        assert api_versions(wire).finalized_features_epoch > before.finalized_features_epoch
        assert heartbeat(server).error_code == UNSUPPORTED_VERSION
        refused = query(wire, (GROUPS, 1, SAFE), validate_only=False)
        reason = f"Invalid update version 1 for feature {GROUPS}. Can't downgrade to a newer version."
        assert (refused.error_code, refused.error_message) == (INVALID_UPDATE_VERSION, f"{FAILED}{reason}")
        assert query(wire, (GROUPS, 1, UPGRADE), validate_only=False).error_code == 0
        wait_until(lambda: levels(wire).get(GROUPS) == 1, within=60, what="the feature is back")
        assert heartbeat(server).error_code != UNSUPPORTED_VERSION


def test_the_admin_of_kafka_python_validates_levels(server: Server) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        assert GROUPS in str(admin.describe_features())
        admin.update_features({GROUPS: ("SAFE_DOWNGRADE", 0)}, validate_only=True)
        with pytest.raises(kafka.errors.KafkaError, match="only supports versions 0-1"):
            admin.update_features({GROUPS: 2}, validate_only=True)
    finally:
        admin.close()


@pytest.mark.java
def test_kafkas_tool_lowers_and_raises_a_feature() -> None:
    programs.kafka_tools()

    def run(*arguments: str) -> tuple[int, list[str]]:
        ran = kafka_tools.run("features", "--bootstrap-server", server.bootstrap_servers, *arguments)
        return ran.returncode, ran.stdout.splitlines()

    with serving() as server:
        assert run("downgrade", "--feature", f"{GROUPS}=0") == (0, [f"{GROUPS} was downgraded to 0."])
        assert run("upgrade", "--feature", f"{GROUPS}=1") == (0, [f"{GROUPS} was upgraded to 1."])
        status, lines = run("upgrade", "--feature", f"{GROUPS}=2")
        assert status == 1
        assert lines[0].startswith(f"Could not upgrade {GROUPS} to 2. {FAILED}Invalid update version 2")

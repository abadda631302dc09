"""The controller: what it answers is committed, published and there after a restart, and only a leader answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pybroker.controller.cluster.events import ConfigChange, FeatureUpdate, NewTopic, UpgradeType
from pybroker.controller.errors import NotControllerError
from pybroker.controller.quorum.log import first_records
from pybroker.controller.quorum.log.bootstrap import write_bootstrap
from pybroker.machine.runner import UnwritableError
from pybroker.metadata.features import INITIAL_LEVELS
from pybroker.metadata.image import CLIENT_METRICS_RESOURCE, TOPIC_RESOURCE, ConfigResource, MetadataImage
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord
from pybroker.security.scram_mechanisms import SCRAM_SHA_256
from tests.support.controllers import build, running
from tests.support.quorums import until

SHA_256 = SCRAM_SHA_256.number


def without_offset(image: MetadataImage) -> tuple[Any, ...]:
    return image.cluster, image.topics, image.configs, image.features, image.producer_ids


async def test_everything_survives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        epoch = await one.register()
        await one.channel.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1) for name in "ab"])
        await one.channel.delete_topics(["a"])
        change = ConfigChange(ConfigResource(TOPIC_RESOURCE, "b"), {"retention.ms": "5"})
        await one.channel.alter_configs([change])
        assert await one.channel.allocate_producer_ids(1, epoch) == range(1000)
        before = one.image
    async with running(tmp_path) as one:
        assert without_offset(one.image) == without_offset(before)
        assert await one.register() > epoch
        assert await one.channel.allocate_producer_ids(1, one.image.cluster.brokers[1].epoch) == range(1000, 2000)


async def test_many_requests_of_one_turn_are_one_batch_of_the_log(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.register()
        offsets = []
        before = one.image.offset
        creations = [
            one.channel.create_topics([NewTopic(name=f"t{n}", num_partitions=1, replication_factor=1)])
            for n in range(50)
        ]

        async def create(creation: Awaitable[Any]) -> None:
            await creation
            offsets.append(one.image.offset)

        await asyncio.gather(*map(create, creations))
        assert set(offsets) == {before + 100}


async def test_records_that_cannot_be_encoded_fail_their_request_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.register()
        names = ["a", "b", "\ud800", "c"]
        resources = [ConfigResource(CLIENT_METRICS_RESOURCE, name) for name in names]
        responses = await asyncio.gather(
            *(one.channel.alter_configs([ConfigChange(resource, {"interval.ms": "1000"})]) for resource in resources),
            return_exceptions=True,
        )
        assert isinstance(responses.pop(2), UnwritableError)
        assert [result.error_code for [result] in responses] == [ErrorCode.NONE] * 3  # type: ignore[misc]
        assert [resource in one.image.configs.by_resource for resource in resources] == [True, True, False, True]


async def test_publishers_are_called_before_the_answer(tmp_path: Path) -> None:
    published: list[int] = []

    class Publisher:
        def publish(self, delta: object, image: MetadataImage) -> None:
            published.append(image.offset)

    async with running(tmp_path, publishers=[Publisher()]) as one:
        assert published[-1] == one.image.offset
        await one.register()
        assert published[-1] == one.image.offset


async def test_users_that_a_node_was_formatted_with_are_known_throughout_its_first_start(tmp_path: Path) -> None:
    """The record of the first leader's epoch is published before the first records of the cluster."""
    user = UserScramCredentialRecord(
        name="node", mechanism=SHA_256, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096
    )
    write_bootstrap(tmp_path, [FeatureLevelRecord(name="metadata.version", feature_level=25), user], 0)
    known: list[tuple[int, set[str]]] = []

    class Publisher:
        def publish(self, _delta: object, image: MetadataImage) -> None:
            known.append((image.offset, set(one.controller.scram.of(SHA_256))))

    one = build(tmp_path)
    await one.controller.open([Publisher()])
    await one.controller.start()
    try:
        await until(lambda: bool(one.image.features.levels))
    finally:
        await one.controller.stop()
    assert known[0][0] < known[-1][0]
    assert [users for _, users in known] == [{"node"}] * len(known)


async def test_what_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.register()
        offset = one.image.offset
        topic = NewTopic(name="t", num_partitions=1, replication_factor=1)
        [created] = await one.channel.create_topics([topic], validate_only=True)
        assert created.error_code is ErrorCode.NONE
        [deleted] = await one.channel.delete_topics([b"?" * 16])
        assert deleted.error_code is ErrorCode.UNKNOWN_TOPIC_ID
        assert one.image.offset == offset


async def test_a_new_cluster_has_its_features_finalized(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert one.image.features.levels == INITIAL_LEVELS
        assert (
            await one.channel.update_features([FeatureUpdate("metadata.version", 99)])
        ).error_code is ErrorCode.INVALID_UPDATE_VERSION


async def test_a_cluster_of_an_older_broker_has_its_missing_features_finalized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(first_records, "INITIAL_LEVELS", {"metadata.version": 25})
        async with running(tmp_path) as one:
            assert one.image.features.levels == {"metadata.version": 25}
    async with running(tmp_path) as one:
        assert one.image.features.levels == INITIAL_LEVELS
        epoch = one.image.features.epoch
    async with running(tmp_path) as one:
        assert one.image.features.epoch == epoch


async def test_beside_another_broker_no_level_rises_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may run an older version, also where one voter is the whole quorum."""
    with monkeypatch.context() as older:
        older.setattr(first_records, "INITIAL_LEVELS", {"metadata.version": 25})
        async with running(tmp_path) as one:
            await one.register(2)
    async with running(tmp_path) as one:
        assert one.image.features.levels == {"metadata.version": 25}


async def test_a_feature_that_was_removed_stays_so_over_restarts(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        result = await one.channel.update_features([FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)])
        assert result.error_code is ErrorCode.NONE
    async with running(tmp_path) as one:
        assert one.image.features.levels == INITIAL_LEVELS | {"group.version": 0}


async def test_a_stopped_controller_refuses(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        pass
    with pytest.raises(NotControllerError, match="does not lead"):
        await one.channel.delete_topics(["t"])


async def test_a_write_that_fails_ends_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = []
    async with running(tmp_path, on_failure=failures.append) as one:
        await one.register()
        before = one.image
        monkeypatch.setattr(one.controller._voter.log, "write", raising(OSError(28, "No space left on device")))
        topic = NewTopic(name="t", num_partitions=1, replication_factor=1)
        with pytest.raises(OSError, match="No space left"):
            await one.channel.create_topics([topic])
        assert len(failures) == 1
        assert one.image is before
        with pytest.raises(NotControllerError, match="No space left"):
            await one.channel.create_topics([topic])


def raising(error: Exception) -> Callable[[object], None]:
    def write(writings: object) -> None:
        raise error

    return write


async def test_the_leader_of_the_quorum_is_the_voter_that_was_elected(tmp_path: Path) -> None:
    built = build(tmp_path)
    await built.controller.open()
    assert built.channel.leader_id == -1
    await built.controller.start()
    assert built.channel.leader_id == 1
    assert built.channel.quorum_state().leader_id == 1
    await built.controller.stop()

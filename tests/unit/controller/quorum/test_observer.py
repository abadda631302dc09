"""An observer has what is committed, keeps it over restarts, and believes nobody who cannot be of its quorum."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pybroker.controller.cluster.events import NewTopic
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.native import build_record_batch
from pybroker.controller.quorum.observer import Observer, ObserverSettings
from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy
from pybroker.controller.quorum.snapshot.snapshots import list_snapshots
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.frame import encode_record
from tests.support.controllers import Running, running
from tests.support.metadata_leader import FETCH, FETCH_SNAPSHOT, listener_of
from tests.support.scripted_controller import ScriptedController

EAGER = SnapshotPolicy(bytes_between=200, interval_ms=0, retention_bytes=0, retention_ms=-1)


def settings_of(directory: Path, *ports: int, **changes: Any) -> ObserverSettings:
    return ObserverSettings(
        directory=directory / "observer",
        cluster_id="c",
        node_id=9,
        directory_id=b"d" * 16,
        voters=(),
        bootstrap_servers=tuple(("127.0.0.1", port) for port in ports),
        segment_bytes=1 << 20,
        segment_ms=1 << 40,
        request_timeout_ms=5000,
        retry_backoff_ms=1,
        fetch_max_bytes=1 << 20,
        snapshot_piece_bytes=64,
        snapshots=SnapshotPolicy(),
    )._replace(**changes)


@asynccontextmanager
async def observing(settings: ObserverSettings) -> AsyncIterator[Observer]:
    observer = Observer(settings)
    await observer.open()
    observer.start()
    try:
        yield observer
    finally:
        await observer.stop()


async def create(leader: Running, *names: str) -> None:
    for name in names:
        [created] = await leader.channel.create_topics([NewTopic(name=name, num_partitions=2, replication_factor=1)])
        assert created.error_code is ErrorCode.NONE


async def caught_up(observer: Observer, leader: Running) -> None:
    async with asyncio.timeout(60):
        await observer.wait_for(leader.image.offset)
    assert observer.image.topics == leader.image.topics
    assert observer.image == leader.image


async def test_what_is_committed_is_published_and_the_leader_known(tmp_path: Path) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        await create(leader, "a")
        async with observing(settings_of(tmp_path, listener.endpoint.port)) as observer:
            await caught_up(observer, leader)
            assert (observer.leader_id, observer.leader_epoch) == (1, leader.controller.leader_epoch)
            assert observer.leader_endpoint == ("127.0.0.1", listener.endpoint.port)
            await create(leader, "b", "c")
            await caught_up(observer, leader)
        [seen] = leader.controller.quorum_state().observers
        assert (seen.node_id, seen.directory_id) == (9, b"d" * 16)


async def test_a_restart_fetches_only_what_is_new(tmp_path: Path) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        await create(leader, "a")
        settings = settings_of(tmp_path, listener.endpoint.port)
        async with observing(settings) as observer:
            await caught_up(observer, leader)
        offset = leader.image.offset + 1
        await create(leader, "b")
        first: list[int] = []
        respond = listener.responses[FETCH]

        def noted(request: FetchRequest) -> Any:
            first.append(request.topics[0].partitions[0].fetch_offset)
            return respond(request)

        listener.responses[FETCH] = noted
        async with observing(settings) as observer:
            assert observer.image.offset == -1, "nothing is published before a leader has confirmed it"
            await caught_up(observer, leader)
        assert first[0] == offset


async def test_it_follows_another_leader_and_waits_for_one_that_is_not_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running(tmp_path) as leader, listener_of(leader.controller) as first, listener_of(None) as not_leading:
        settings = settings_of(tmp_path, not_leading.endpoint.port, first.endpoint.port)
        async with observing(settings) as observer:
            await caught_up(observer, leader)
            await first.die()
            await leader.register()
            await not_leading.until_requested(FETCH, 5)
            assert caplog.text.count("Failed to fetch the metadata log") == 2
            async with listener_of(leader.controller, port=first.endpoint.port):
                await caught_up(observer, leader)
    assert "Fetching the metadata log again" in caplog.text


async def test_where_the_log_does_not_reach_back_a_snapshot_comes_first(tmp_path: Path) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        await create(leader, "a", "b")
        controller = leader.controller
        await controller._take_snapshot(controller.image, controller._voter.applied)
        log = controller._voter.log
        end_offset = controller.image.offset + 1
        controller._voter.forget_before(end_offset)
        log.advance_start(end_offset)
        await create(leader, "c")
        async with observing(settings_of(tmp_path, listener.endpoint.port)) as observer:
            await caught_up(observer, leader)
        assert listener.requested[FETCH_SNAPSHOT] > 5, "in pieces of 64 bytes"
        directory = tmp_path / "observer" / DIRECTORY_NAME
        assert [snapshot.end_offset for snapshot in list_snapshots(directory)] == [end_offset]
        async with observing(settings_of(tmp_path, listener.endpoint.port)) as observer:
            await caught_up(observer, leader)


async def test_its_own_snapshots_make_the_copy_small(tmp_path: Path) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        settings = settings_of(tmp_path, listener.endpoint.port, snapshots=EAGER, segment_bytes=600)
        async with observing(settings) as observer:
            for number in range(12):
                await create(leader, f"t{number}")
                await caught_up(observer, leader)
                if observer._snapshot is not None:
                    await observer._snapshot
        directory = tmp_path / "observer" / DIRECTORY_NAME
        assert len(list_snapshots(directory)) == 1
        assert not (directory / "00000000000000000000.log").exists()
        async with observing(settings) as observer:
            await caught_up(observer, leader)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a batch's bytes": lambda log: log.write_bytes(log.read_bytes()[:100] + b"\0\0\0\0" + log.read_bytes()[104:]),
    "the first segment": lambda log: log.unlink(),
    "a snapshot": lambda log: (log.parent / "00000000000000000003-0000000001.checkpoint").write_bytes(b"damage" * 20),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_copy_costs_a_fetch_and_no_start(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        settings = settings_of(tmp_path, listener.endpoint.port, segment_bytes=400)
        async with observing(settings) as observer:
            await create(leader, "a", "b", "c", "d")
            await caught_up(observer, leader)
        damage(tmp_path / "observer" / DIRECTORY_NAME / "00000000000000000000.log")
        async with observing(settings) as observer:
            await caught_up(observer, leader)
            assert observer.image == leader.image


async def test_a_copy_of_another_log_is_kept_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path / "old") as leader, listener_of(leader.controller) as listener:
        await leader.register()
        await create(leader, "a", "b")
        async with observing(settings_of(tmp_path, listener.endpoint.port)) as observer:
            await caught_up(observer, leader)
    async with running(tmp_path / "new") as leader, listener_of(leader.controller) as listener:
        await leader.register()
        async with observing(settings_of(tmp_path, listener.endpoint.port)) as observer:
            await caught_up(observer, leader)
    assert (tmp_path / "observer" / f"{DIRECTORY_NAME}.aside").is_dir()
    assert "the copy is kept as" in caplog.text


async def test_a_node_of_another_cluster_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        settings = settings_of(tmp_path, listener.endpoint.port, cluster_id="other")
        async with observing(settings) as observer:
            await listener.until_requested(FETCH, 3)
            assert observer.image.offset == -1
    assert "rejects the fetch with INCONSISTENT_CLUSTER_ID" in caplog.text


def respond(**fields: Any) -> FetchResponse:
    leader = fields.pop("leader", LeaderIdAndEpoch(leader_id=1, leader_epoch=5))
    partition = PartitionData(current_leader=leader, **fields)
    return FetchResponse(responses=[FetchableTopicResponse(topic="__cluster_metadata", partitions=[partition])])


def batch(base_offset: int, epoch: int, *values: bytes) -> bytes:
    built = bytearray(build_record_batch(list(values), 0))
    built[:8], built[12:16] = base_offset.to_bytes(8), epoch.to_bytes(4)
    return bytes(built)


LEVEL = encode_record(FeatureLevelRecord(name="group.version", feature_level=1), 0)
LIES: dict[str, tuple[FetchResponse, str]] = {
    "no partition": (FetchResponse(), "UNKNOWN_SERVER_ERROR"),
    "an unknown error": (FetchResponse(error_code=9999), "error code 9999"),
    "a corrupt batch": (respond(high_watermark=9, records=batch(0, 1, LEVEL)[:-1] + b"x"), "corrupt"),
    "half a batch": (respond(high_watermark=9, records=batch(0, 1, LEVEL)[:-1]), "cut short"),
    "no batch": (respond(high_watermark=9, records=b"nonsense"), "cut short"),
    "a gap": (respond(high_watermark=9, records=batch(1, 1, LEVEL)), "expected offset 0"),
    "what is not committed": (respond(high_watermark=0, records=batch(0, 1, LEVEL)), "is not committed"),
    "an epoch that goes back": (
        respond(high_watermark=9, records=batch(0, 4, LEVEL) + batch(1, 3, LEVEL)),
        "is of epoch 3, behind 4",
    ),
    "an epoch to come": (respond(high_watermark=9, records=batch(0, 6, LEVEL)), "ahead of its leader"),
    "no record": (respond(high_watermark=9, records=batch(0, 1, b"nonsense")), "frame version"),
    "a record that cannot follow": (
        respond(high_watermark=9, records=batch(0, 1, bytes.fromhex("01090000") + bytes(16) + b"\0")),
        "",
    ),
    "an empty snapshot": (respond(snapshot_id=SnapshotId(end_offset=0, epoch=0)), "is offered to a node that has"),
    "a snapshot that is not there": (respond(snapshot_id=SnapshotId(end_offset=9, epoch=1)), "cannot be fetched"),
    "no leader": (respond(leader=LeaderIdAndEpoch(), high_watermark=9), "responds as the leader"),
}


@pytest.mark.parametrize(("lie", "words"), LIES.values(), ids=LIES)
async def test_an_answer_that_cannot_be_of_the_quorum_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, lie: FetchResponse, words: str
) -> None:
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        async with ScriptedController({FETCH: lambda _: lie, FETCH_SNAPSHOT: lambda _: None}) as liar:
            settings = settings_of(tmp_path, liar.endpoint.port, listener.endpoint.port)
            async with observing(settings) as observer:
                await caught_up(observer, leader)
                assert liar.requested[FETCH] >= 1
    assert words in caplog.text


async def test_a_leader_that_calls_the_log_diverging_costs_the_copy_and_not_the_image(tmp_path: Path) -> None:
    diverging = respond(diverging_epoch=EpochEndOffset(epoch=1, end_offset=0), high_watermark=1 << 60)
    async with running(tmp_path) as leader, listener_of(leader.controller) as listener:
        await leader.register()
        settings = settings_of(tmp_path, listener.endpoint.port)
        async with observing(settings) as observer:
            await caught_up(observer, leader)
            image, honest = observer.image, listener.responses[FETCH]
            requested = listener.requested[FETCH]
            listener.responses[FETCH] = lambda _: diverging
            await create(leader, "a")
            await listener.until_requested(FETCH, requested + 2)
            assert observer.image is image
            listener.responses[FETCH] = honest
            await caught_up(observer, leader)

"""Transactional producers of a simulated cluster, and readers of what they commit, at leaders and at followers.

Owns what such clients believe: epochs, sequences, who coordinates. A producer commits, aborts, is taken over by its
next instance and goes on as a zombie, and its batches arrive again, late. Some transactions have an offset of a group.
One producer is as those before Kafka 4.0: it adds partitions by itself, and has an epoch for all its transactions.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.coordinator.transaction.events import AddPartitions, EndTransaction, InitProducerId, ProducerIdentity
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader, skip_tagged
from pybroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from pybroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from pybroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pybroker.protocol.schema import Message
from tests.simulation.simulated_network import LostError
from tests.simulation.simulated_transactions import TIMEOUT_MS
from tests.simulation.transaction_audit import Audit, Fate, Transaction, readable
from tests.support.batches import TRANSACTIONAL, batch_of, read_batches

if TYPE_CHECKING:
    from tests.simulation.simulated_clients import Clients
    from tests.simulation.whole_world import World

OUTPUTS = ("x", "y")
"""The topics that transactions write to, of one partition each."""
_PRODUCE_VERSION, _FETCH_VERSION = 12, 16
_OLD_PRODUCE_VERSION = 11
_COMMIT_VERSION, _OLD_COMMIT_VERSION = 5, 4
_PRODUCERS = {"p": False, "q": True}
"""By name, whether it is a client from before Kafka 4.0."""
_READ_TOPIC = "t"
"""Whose offsets are committed."""
_TRIES = 6
_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def frame_of(api_key: int, version: int, request: Message) -> bytes:
    """The frame of a request, without its size."""
    header = RequestHeader(request_api_key=api_key, request_api_version=version, client_id="c")
    return encode(header, 2) + encode(request, version)


class Sent(NamedTuple):
    """A batch that may arrive again."""

    topic: str
    frame: bytes
    version: int


class Over(Exception):  # noqa: N818 - it ends an instance, and is no error
    """This instance of a producer goes on no more."""


class Instance:
    """One instance of a transactional producer."""

    def __init__(self, clients: TransactionalClients, name: str, identity: ProducerIdentity, number: int) -> None:
        self._clients, self.name, self.identity, self._number = clients, name, identity, number
        self._is_old = _PRODUCERS[name]
        self._sequences: dict[str, int] = {}
        self._transactions = 0
        self.open: Transaction | None = None
        self.sent: list[Sent] = []

    async def begin_and_write(self, random: Random) -> None:
        """Write to some topics; raises `Over`."""
        self._transactions += 1
        if not self._is_old:
            self._sequences.clear()
        self.sent.clear()
        self.open = self._clients.audit.begin(f"{self.name}{self._number}.{self._transactions}")
        for topic in random.sample(OUTPUTS, random.choice((1, 2, 2))):
            await self._maybe_add(topic)
            for _ in range(random.choice((1, 1, 2))):
                await self.write(topic)
        if random.random() < 0.5:
            await self.commit_offset()

    async def _maybe_add(self, topic: str) -> None:
        """What an old client does before it writes somewhere; raises `Over`."""
        if self._is_old:
            await self._clients.query(AddPartitions(self.name, self.identity, frozenset([(topic, 0)]), 0))

    async def commit_offset(self) -> None:
        """Commit the next offset of the producer's group with the open transaction; raises `Over`."""
        assert self.open is not None
        await self._maybe_add(OFFSETS_TOPIC)
        offset, audit = self._clients.next_offset(self.name), self._clients.audit
        place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=_READ_TOPIC, partitions=[place])],
        )
        audit.offers(self.open, self.name, offset)
        if not await self._clients.commit(request, _OLD_COMMIT_VERSION if self._is_old else _COMMIT_VERSION):
            raise Over
        audit.took(self.open, self.name, offset)

    async def write(self, topic: str, *, tries: int = _TRIES) -> None:
        """Write one record of the open transaction, sent until it is answered; raises `Over`."""
        assert self.open is not None
        sequence = self._sequences.get(topic, 0)
        value = f"{self.open.name}/{topic}{sequence}".encode()
        frame = self.frame(topic, value, sequence)
        self._clients.audit.wrote(self.open, value)
        self.sent.append(Sent(topic, frame, self._version))
        for _ in range(tries):
            code = await self._clients.send(topic, frame, version=self._version)
            if code == ErrorCode.NONE:
                self._sequences[topic] = sequence + 1
                self._clients.acknowledged(self.open, topic, value)
                return
            if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
                raise Over
            await asyncio.sleep(0.05)
        raise Over

    def frame(self, topic: str, value: bytes, sequence: int) -> bytes:
        """The frame of a Produce of one record."""
        records = batch_of(
            value,
            attributes=TRANSACTIONAL,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=sequence,
            base_timestamp=self._clients.now_ms(),
        )
        topics = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])]
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=1000, topic_data=topics)
        return frame_of(0, self._version, request)

    @property
    def _version(self) -> int:
        return _OLD_PRODUCE_VERSION if self._is_old else _PRODUCE_VERSION

    def end_event(self, *, commit: bool) -> EndTransaction:
        """The end of the open transaction."""
        return EndTransaction(self.name, self.identity, commit, 0 if self._is_old else 2)

    async def end(self, *, commit: bool) -> None:
        """End the open transaction; raises `Over` where it is not known how it ended."""
        transaction, self.open = self.open, None
        assert transaction is not None
        audit = self._clients.audit
        if commit:
            audit.ended(transaction, Fate.COMMITTING)
        identity = await self._clients.decide(self.end_event(commit=commit))
        if not self._is_old:
            self.identity = identity
        audit.ended(transaction, Fate.COMMITTED if commit else Fate.ABORTED)


class TransactionalClients:
    """See the module."""

    def __init__(self, clients: Clients, world: World) -> None:
        self._clients, self._world = clients, world
        self._random = Random(f"{world.seed}/transactions")
        self.audit = Audit()
        self.read_of_followers = 0
        self._instances = 0
        self._offsets = 0
        # By topic, and whether it is a follower's reader.
        self._positions = dict.fromkeys([(topic, follows) for topic in OUTPUTS for follows in (False, True)], 0)

    def works(self) -> list[Any]:
        """What runs: producers, readers, and one who looks at offsets."""
        readers = [self._consume(topic, follows=follows) for topic, follows in self._positions]
        return [*map(self._produce, _PRODUCERS), *readers, self._look_at_offsets()]

    def next_offset(self, _group: str) -> int:
        """An offset that no transaction has."""
        self._offsets += 1
        return self._offsets

    def now_ms(self) -> int:
        """The time."""
        return self._world.loop.now_ms()

    # -------------------------------------------------------------------------------------------------------- producers

    async def _produce(self, name: str) -> None:
        random = self._random
        while True:
            try:
                instance = await self._init(name)
                while random.random() < 0.9:
                    await asyncio.sleep(random.uniform(0.0, 0.25))
                    await instance.begin_and_write(random)
                    what = random.random()
                    if what < 0.6:
                        await instance.end(commit=True)
                    elif what < 0.8:
                        late = list(instance.sent)
                        await instance.end(commit=False)
                        self._arrive_late(late)
                    elif what < 0.95:
                        await self._take_over(instance)
                    else:
                        break  # It ends in the middle, and its transaction is open.
            except Over:
                await asyncio.sleep(random.uniform(0.0, 0.2))

    async def _init(self, name: str) -> Instance:
        identity = await self.decide(InitProducerId(name, TIMEOUT_MS))
        self._instances += 1
        return Instance(self, name, identity, self._instances)

    async def _take_over(self, zombie: Instance) -> None:
        """The next instance begins, while the last one goes on with its transaction."""
        heir = await self._init(zombie.name)
        if zombie.open is not None:
            self.audit.ended(zombie.open, Fate.FENCED)
        self._begin(self._go_on(zombie))
        await heir.begin_and_write(self._random)
        await heir.end(commit=True)

    async def _go_on(self, zombie: Instance) -> None:
        """A zombie writes, and commits."""
        try:
            for topic in OUTPUTS:
                await zombie.write(topic, tries=2)
        except Over:
            pass
        try:
            await self.decide(zombie.end_event(commit=True))
        except Over:
            return
        self._world.check(False, f"the zombie {zombie.name} {zombie.identity} has committed")

    def _arrive_late(self, sent: list[Sent]) -> None:
        """Batches of a transaction that was aborted come once more, as from a slow network."""

        async def arrive() -> None:
            await asyncio.sleep(self._random.uniform(0.0, 0.3))
            for topic, frame, version in sent:
                await self.send(topic, frame, version=version)

        self._begin(arrive())

    def _begin(self, work: Any) -> None:
        asyncio.ensure_future(work)  # noqa: RUF006 - the life keeps its tasks

    async def decide(self, event: Any) -> ProducerIdentity:
        """Have the coordinator decide, asked again until it does; raises `Over` where it refuses for good."""
        while True:
            identity = await self.query(event)
            if identity is not None:
                return ProducerIdentity(*identity)

    async def query(self, event: Any) -> Any:
        """As `decide`; the reply, which may be None."""
        while True:
            await asyncio.sleep(self._random.uniform(0.02, 0.1))
            found = self._clients.leader_of(STATE_TOPIC)
            if found is None:
                continue
            try:
                return await self._clients.call(found[0], found[0].decide_transaction, event)
            except LostError:
                continue
            except CoordinatorError as error:
                if error.code in _AGAIN:
                    continue
                raise Over from None
            except Exception as error:  # noqa: BLE001 - the process has ended, or its append was not committed
                self._world.trace("refused", type(error).__name__)
                continue

    async def commit(self, request: TxnOffsetCommitRequest, version: int) -> bool:
        """Commit offsets with a transaction, asked some times; whether they are taken."""
        for _ in range(_TRIES):
            found = self._clients.leader_of(OFFSETS_TOPIC)
            if found is not None:
                sent, _ = decode(TxnOffsetCommitRequest, encode(request, version), version)
                try:
                    code = await self._clients.call(found[0], found[0].commit_offsets, sent, version)
                except LostError:
                    code = ErrorCode.NOT_COORDINATOR
                if code == ErrorCode.NONE:
                    return True
                if code not in _AGAIN:
                    return False
            await asyncio.sleep(0.05)
        return False

    async def send(self, topic: str, frame: bytes, *, version: int = _PRODUCE_VERSION) -> int:
        """Send a Produce once; its error code, -1 where no answer came."""
        found = self._clients.leader_of(topic)
        if found is None:
            return -1
        try:
            reply = await self._clients.call(found[0], found[0].serve_produce, frame)
        except LostError:
            return -1
        if reply is None:
            return -1
        response, _ = decode(ProduceResponse, reply, version, skip_tagged(reply, 4))
        [partition] = response.responses[0].partition_responses
        return int(partition.error_code)

    # ---------------------------------------------------------------------------------------------------------- readers

    async def _look_at_offsets(self) -> None:
        """Ask now and then for the offsets that no open transaction may change."""
        world, random = self._world, self._random
        while True:
            await asyncio.sleep(random.uniform(0.1, 0.5))
            found = self._clients.leader_of(OFFSETS_TOPIC)
            if found is None:
                continue
            group = random.choice(list(_PRODUCERS))
            known = self.audit.known_offset(group)
            try:
                part = await self._clients.call(found[0], found[0].stable_offsets, request_of(group))
            except LostError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever a coordinator refuses with: it is asked again
                world.trace("refused", type(error).__name__)
                continue
            self.take_offset(group, known, part, is_newest=world.invariants.is_leader(found[0].number, OFFSETS_TOPIC))

    def take_offset(self, group: str, known: int, response: Any, *, is_newest: bool) -> int | None:
        """Look at an answer; the offset, None where a transaction may change it."""
        [topic] = response.topics
        part = topic.partitions[0]
        if response.error_code or part.error_code:
            return None
        if not self._world.lost_offsets():
            self.audit.saw_offset(group, known if is_newest else -1, part.committed_offset)
        return int(part.committed_offset)

    async def _consume(self, topic: str, *, follows: bool) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0.1, 0.4))
            found = self._clients.leader_of(topic)
            if found is None:
                continue
            node, topic_id, epoch = found
            if follows:
                node = self._random.choice([one for one in self._world.nodes if one is not node])
            wanted = FetchPartition(
                partition=0,
                current_leader_epoch=epoch,
                fetch_offset=self._positions[topic, follows],
                partition_max_bytes=1 << 12,
            )
            topics = [FetchTopic(topic_id=topic_id, partitions=[wanted])]
            request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 12, isolation_level=1, topics=topics)
            try:
                reply = await self._clients.call(node, node.serve_produce, frame_of(1, _FETCH_VERSION, request))
            except LostError:
                continue
            if reply is not None:
                response, _ = decode(FetchResponse, reply, _FETCH_VERSION, skip_tagged(reply, 4))
                for part in response.responses[0].partitions if response.responses else []:
                    self._take(topic, part, follows=follows)

    def acknowledged(self, transaction: Transaction, topic: str, value: bytes) -> None:
        """Note that a record was acknowledged; an unclean election may have lost who was fenced."""
        if not self._world.has_lost(topic):
            self.audit.acknowledged(transaction, topic, value)

    def _take(self, topic: str, part: Any, *, follows: bool) -> None:
        position = self._positions[topic, follows]
        batches = read_batches(bytes(part.records or b""))
        aborted = [(one.producer_id, one.first_offset) for one in part.aborted_transactions or []]
        if self._world.has_lost(topic):
            return
        for offset, value in readable(batches, aborted):
            if offset >= position:
                self.audit.saw(topic, offset, value)
                self.read_of_followers += follows
        if batches:
            self._positions[topic, follows] = max(position, batches[-1].last_offset + 1)


def request_of(group: str) -> OffsetFetchRequestGroup:
    """An OffsetFetch of what the transactions of a group commit."""
    topics = [OffsetFetchRequestTopics(name=_READ_TOPIC, partition_indexes=[0])]
    return OffsetFetchRequestGroup(group_id=group, topics=topics)


GROUPS = tuple(_PRODUCERS)
"""Each producer commits offsets of the group of its name."""

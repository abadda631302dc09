"""Transactional producers of a simulated cluster, and a reader of what they commit.

Owns what such clients believe: epochs, sequences, who coordinates. A producer commits, aborts, is taken over by its
next instance and goes on as a zombie, and its batches arrive again, late.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.coordinator.transaction.events import EndTransaction, InitProducerId, ProducerIdentity
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader, skip_tagged
from pybroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pybroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
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


class Over(Exception):  # noqa: N818 - it ends an instance, and is no error
    """This instance of a producer goes on no more."""


class Instance:
    """One instance of a transactional producer."""

    def __init__(self, clients: TransactionalClients, name: str, identity: ProducerIdentity, number: int) -> None:
        self._clients, self.name, self.identity, self._number = clients, name, identity, number
        self._sequences: dict[str, int] = {}
        self._transactions = 0
        self.open: Transaction | None = None
        self.sent: list[Sent] = []

    async def begin_and_write(self, random: Random) -> None:
        """Write to some topics; raises `Over`."""
        self._transactions += 1
        self._sequences.clear()
        self.sent.clear()
        self.open = self._clients.audit.begin(f"{self.name}{self._number}.{self._transactions}")
        for topic in random.sample(OUTPUTS, random.choice((1, 2, 2))):
            for _ in range(random.choice((1, 1, 2))):
                await self.write(topic)

    async def write(self, topic: str, *, tries: int = _TRIES) -> None:
        """Write one record of the open transaction, sent until it is answered; raises `Over`."""
        assert self.open is not None
        sequence = self._sequences.get(topic, 0)
        value = f"{self.open.name}/{topic}{sequence}".encode()
        frame = self.frame(topic, value, sequence)
        self._clients.audit.wrote(self.open, value)
        self.sent.append(Sent(topic, frame))
        for _ in range(tries):
            code = await self._clients.send(topic, frame)
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
        return frame_of(0, _PRODUCE_VERSION, request)

    async def end(self, *, commit: bool) -> None:
        """End the open transaction; raises `Over` where it is not known how it ended."""
        transaction, self.open = self.open, None
        assert transaction is not None
        audit = self._clients.audit
        if commit:
            audit.ended(transaction, Fate.COMMITTING)
        event = EndTransaction(self.name, self.identity, commit, 2)
        self.identity = await self._clients.decide(event)
        audit.ended(transaction, Fate.COMMITTED if commit else Fate.ABORTED)


class TransactionalClients:
    """See the module."""

    def __init__(self, clients: Clients, world: World) -> None:
        self._clients, self._world = clients, world
        self._random = Random(f"{world.seed}/transactions")
        self.audit = Audit()
        self._instances = 0
        self._positions = dict.fromkeys(OUTPUTS, 0)

    def works(self) -> list[Any]:
        """What runs: producers and a reader."""
        return [self._produce("p"), self._produce("q"), *(self._consume(topic) for topic in OUTPUTS)]

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
            await self.decide(EndTransaction(zombie.name, zombie.identity, True, 2))
        except Over:
            return
        self._world.check(False, f"the zombie {zombie.name} {zombie.identity} has committed")

    def _arrive_late(self, sent: list[Sent]) -> None:
        """Batches of a transaction that was aborted come once more, as from a slow network."""

        async def arrive() -> None:
            await asyncio.sleep(self._random.uniform(0.0, 0.3))
            for topic, frame in sent:
                await self.send(topic, frame)

        self._begin(arrive())

    def _begin(self, work: Any) -> None:
        asyncio.ensure_future(work)  # noqa: RUF006 - the life keeps its tasks

    async def decide(self, event: Any) -> ProducerIdentity:
        """Have the coordinator decide, asked again until it does; raises `Over` where it refuses for good."""
        while True:
            await asyncio.sleep(self._random.uniform(0.02, 0.1))
            found = self._clients.leader_of(STATE_TOPIC)
            if found is None:
                continue
            try:
                identity = await self._clients.call(found[0], found[0].decide_transaction, event)
            except LostError:
                continue
            except CoordinatorError as error:
                if error.code in _AGAIN:
                    continue
                raise Over from None
            except Exception as error:  # noqa: BLE001 - the process has ended, or its append was not committed
                self._world.trace("refused", type(error).__name__)
                continue
            if identity is not None:
                return ProducerIdentity(*identity)

    async def send(self, topic: str, frame: bytes) -> int:
        """Send a Produce once; its error code, -1 where no answer came."""
        found = self._clients.leader_of(topic)
        if found is None:
            return -1
        try:
            answer = await self._clients.call(found[0], found[0].serve_produce, frame)
        except LostError:
            return -1
        if answer is None:
            return -1
        response, _ = decode(ProduceResponse, answer, _PRODUCE_VERSION, skip_tagged(answer, 4))
        [partition] = response.responses[0].partition_responses
        return int(partition.error_code)

    # ----------------------------------------------------------------------------------------------------------- reader

    async def _consume(self, topic: str) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0.1, 0.4))
            found = self._clients.leader_of(topic)
            if found is None:
                continue
            leader, topic_id, epoch = found
            wanted = FetchPartition(
                partition=0,
                current_leader_epoch=epoch,
                fetch_offset=self._positions[topic],
                partition_max_bytes=1 << 12,
            )
            topics = [FetchTopic(topic_id=topic_id, partitions=[wanted])]
            request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 12, isolation_level=1, topics=topics)
            try:
                answer = await self._clients.call(leader, leader.serve_produce, frame_of(1, _FETCH_VERSION, request))
            except LostError:
                continue
            if answer is not None:
                response, _ = decode(FetchResponse, answer, _FETCH_VERSION, skip_tagged(answer, 4))
                for part in response.responses[0].partitions if response.responses else []:
                    self._take(topic, part)

    def acknowledged(self, transaction: Transaction, topic: str, value: bytes) -> None:
        """Note that a record was acknowledged; an unclean election may have lost who was fenced."""
        if not self._world.invariants.unclean_elections:
            self.audit.acknowledged(transaction, topic, value)

    def _take(self, topic: str, part: Any) -> None:
        position = self._positions[topic]
        batches = read_batches(bytes(part.records or b""))
        aborted = [(one.producer_id, one.first_offset) for one in part.aborted_transactions or []]
        if self._world.invariants.unclean_elections:
            return
        for offset, value in readable(batches, aborted):
            if offset >= position:
                self.audit.saw(topic, offset, value)
        if batches:
            self._positions[topic] = max(position, batches[-1].last_offset + 1)

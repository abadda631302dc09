"""What happens to the clients of one group, as one seed has it, and how they come to rest.

Owns sizes, odds and order. Nine groups of ten are small, as most faults need few members; each tenth has up to 50.
"""

from __future__ import annotations

from random import Random

from pybroker.coordinator.group.modern.group import ConsumerGroup, ConsumerGroupState
from tests.simulation.consumer_world import GROUP, World
from tests.simulation.consumers import ClassicConsumer, Consumer

ROUNDS_TO_REST = 80
LARGE_EVERY = 10


class Schedule:
    """The clients of one seed, and what befalls them."""

    def __init__(self, seed: int, *, mixed: bool) -> None:
        self.random = random = Random(seed)
        self.world = World(random, mishaps=True)
        self.clients: list[Consumer | ClassicConsumer] = []
        self.mixed = mixed
        # A classic group that was loaded offers new members only the protocol that it has chosen: members of several
        # kinds and coordinators that move do not go together, in Kafka neither.
        self.cooperative = random.choice([True, False]) if random.random() < 0.5 else None
        large = seed % LARGE_EVERY == 0
        self.limit = random.randint(9, 50) if large else random.randint(1, 8)
        self.joins = 0.4 if large else 0.15
        self.steps = random.randint(50, 80) if large else random.randint(15, 60)
        self.partitions = 30 if large else 8
        # The changes of the world that have been looked at.
        self.checked = 0

    def run(self) -> None:
        """Let everything happen that the seed has, then peace."""
        for number in range(self.steps):
            self._happen(number)
        self._complete()
        self._check_rest()
        self._check_log()

    def _happen(self, number: int) -> None:
        random, world, clients = self.random, self.world, self.clients
        choice = random.random()
        if choice < self.joins and len(clients) < self.limit:
            clients.append(self._new_client(number))
        elif choice < 0.50 or not clients:
            self._step()
        elif choice < 0.72:
            random.choice(clients).commit()
        elif choice < 0.76:
            clients.pop(random.randrange(len(clients)))  # It crashes: nothing more comes from it.
        elif choice < 0.80:
            client = random.choice(clients)
            client.leave()
            if random.random() < 0.5:
                clients.remove(client)
        elif choice < 0.85:
            random.choice(clients).change_mind()
        elif choice < 0.87:
            world.add_topic(random.choice(["a", "b", "c1", "c2"]), random.randint(1, self.partitions))
        elif choice < 0.94:
            world.pass_time(random.choice([500, 5000, 20_000, 50_000]))
        elif choice < 0.95 and (self.cooperative is not None or not self.mixed):
            world.move()
        elif choice < 0.97 and isinstance(client := random.choice(clients), Consumer):
            client.misremember()
        else:
            self._step()
        self._check_readers()

    def _step(self) -> None:
        random = self.random
        for client in random.sample(self.clients, min(len(self.clients), 3)):
            client.step(slow=random.random() < 0.2, loses_response=random.random() < 0.1)
            self._check_readers()
        self.world.pass_time(random.choice([0, 10, 1100]))

    def _new_client(self, number: int) -> Consumer | ClassicConsumer:
        random = self.random
        if self.mixed and random.random() < 0.6:
            cooperative = random.random() < 0.5 if self.cooperative is None else self.cooperative
            return ClassicConsumer(self.world, cooperative=cooperative)
        instance_id = random.choice(["i1", "i2"]) if random.random() < 0.2 else None
        return Consumer(self.world, f"m{random.getrandbits(40):010x}-{number}", instance_id)

    def _check_readers(self) -> None:
        """No two clients read a partition, but for those that the coordinator has fenced and that do not know it."""
        group = self.world.group
        if self.world.changes == self.checked or not isinstance(group, ConsumerGroup):
            return
        self.checked = self.world.changes
        readers: dict[tuple[str, int], str] = {}
        for client in self.clients:
            if client.has and not client.is_fenced(group):
                for partition in client.has:
                    reader = readers.setdefault(partition, client.member_id)
                    assert reader == client.member_id, f"{reader} and {client.member_id} both read {partition}"

    def _complete(self) -> None:
        """Have everybody heartbeat in peace, until the lost ones' sessions are over and nothing changes any more."""
        world, clients = self.world, self.clients
        world.mishaps = False
        static: set[str] = set()
        for client in list(clients):
            if isinstance(client, Consumer) and client.instance_id is not None:
                if client.instance_id in static:
                    clients.remove(client)  # Two clients that claim one name fence each other for ever.
                static.add(client.instance_id)
        if self.random.random() < 0.3:  # Nobody's heartbeat says so: the group has to see it by itself.
            world.add_topic(self.random.choice(["a", "b"]), self.random.randint(1, self.partitions))
        quiet_from = world.now + 60_000
        for _ in range(ROUNDS_TO_REST):
            changes = world.changes
            for client in clients:
                client.step()
                self._check_readers()
            if world.changes != changes:
                world.pass_time(1100)
            elif world.now < quiet_from:
                world.pass_time(15_000)
            elif self._is_quiet():
                return
            else:
                world.pass_time(5000)

    def _is_quiet(self) -> bool:
        group = self.world.group
        completed = group is None or group.state_name == ("Stable" if self.clients else "Empty")
        return completed and all(client.is_at_rest for client in self.clients)

    def _check_rest(self) -> None:
        world, clients, group = self.world, self.clients, self.world.group
        if not clients:
            assert group is None or group.is_empty
            return
        if any(isinstance(client, Consumer) for client in clients):
            assert isinstance(group, ConsumerGroup)
            assert group.state is ConsumerGroupState.STABLE, group
            assert group.assignment_epoch == group.epoch
            for member in group.members.values():
                assert {t: frozenset(p) for t, p in member.assigned.items()} == group.targets[member.member_id]
        else:
            assert group.state_name == "Stable", group
        assert {client.member_id for client in clients} == set(group.members)
        read = sorted(partition for client in clients for partition in client.has)
        assert read == sorted(
            (name, partition)
            for name, topic in world.topics.by_name.items()
            if any(client.wants(name) for client in clients)
            for partition in range(topic.partitions)
        )

    def _check_log(self) -> None:
        """Replaying the records gives the same group, with the same offsets; of some seeds, through their bytes."""
        world, state = self.world, self.world.machine.state
        fresh = (world.reloaded() if self.limit % 4 == 0 else world.replayed()).state
        assert fresh.offsets(GROUP) == state.offsets(GROUP)
        if isinstance(self.world.group, ConsumerGroup):
            assert fresh.group(GROUP) == self.world.group

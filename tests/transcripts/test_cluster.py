"""The cluster machine's transcripts: `cluster_*.txt`.

Commands: `register ID [rack=R] [dirs=N] [incarnation=C] [stopped=EPOCH] [elr] [unfenced] [alive]`, `heartbeat ID EPOCH
[offset=N] [fence] [stop]`, `sync ID EPOCH #TOPIC/PARTITION=LEADER_EPOCH.PARTITION_EPOCH:ID[@EPOCH],... [recovering]`,
`controller ID PORT`, `silence ID EPOCH`, `unregister ID`, `lose ID EPOCH DIRECTORY ...`, `place ID EPOCH
#TOPIC/PARTITION=DIRECTORY ... [left=1,2]`, `create NAME [partitions=N] [rf=N] [replicas=1,2/2,3] [KEY=VALUE ...] [;
...] [validate]`, `enlarge NAME partitions=N [replicas=1,2/2,3] [; ...] [validate]`, `delete NAME|#ID ...`, `alter TYPE
NAME KEY=VALUE|KEY-|KEY+=ITEMS|KEY-=ITEMS ... [; ...]`, `replace TYPE NAME KEY=VALUE ...`, `elect preferred|unclean
all|NAME/PARTITION ...`, `reassign NAME/PARTITION=1,2|NAME/PARTITION=cancel ... [fixed]`, `reassigned
all|NAME/PARTITION ...`, `ids BROKER EPOCH`, `balance [BROKER ...]`, `uncleanly`, `idle`, `wait MS`, `feature
NAME=LEVEL ... [safe_downgrade|unsafe_downgrade]`, `topics`, `brokers`, `configs`. Topic ids are numbered in the order
in which they were handed in. A configuration whose value is `bad` is invalid; `cleanup.policy` is a list, by default
of `delete`.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pybroker.controller.cluster import events
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.cluster.whole_requests import whole_creation, whole_deletion, whole_enlargement
from pybroker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource
from pybroker.metadata.in_sync import NO_BROKER_EPOCH, InSyncChange
from pybroker.metadata.replica_directories import LOST_DIRECTORY
from pybroker.protocol.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from pybroker.protocol.messages.create_partitions import CreatePartitionsAssignment
from pybroker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from tests.support.config_rules import BadIsWrong
from tests.transcripts.transcript import check_transcript

HERE = Path(__file__).parent
OFFSET_OF_EPOCHS = 100


class Stage:
    """A machine, and the text of what it answers."""

    def __init__(self) -> None:
        self.machine = ClusterMachine(ClusterSettings(1, 1, 9000, BadIsWrong(), 300_000, 10, 300_000, 500))
        self.now = 0
        self.ids = itertools.count(1)
        self.epochs = itertools.count(OFFSET_OF_EPOCHS)

    def report(self, command: str) -> str:
        name, *words = shlex.split(command.replace(";", " ; "))
        if name == "wait":
            self.now += int(words[0])
            return ""
        if name in ("topics", "brokers", "configs"):
            return "\n".join(getattr(self, f"show_{name}")())
        event = getattr(self, f"event_{name}")(words)
        outcome = self.machine.handle(event, self.now)
        for record in outcome.records:
            self.machine.apply(record)
        replies = outcome.reply if isinstance(outcome.reply, list) else [outcome.reply]
        lines = [show_reply(reply) for reply in replies]
        lines += [f"+ {show_record(record)}" for record in outcome.records]
        lines += [f"  timer: {timer.key} at {timer.deadline_ms}" for timer in outcome.timers]
        return "\n".join(lines)

    def event_register(self, words: list[str]) -> events.RegisterBroker:
        values, flags = split(words[1:])
        return events.RegisterBroker(
            broker_id=int(words[0]),
            incarnation_id=values.get("incarnation", "x").encode().ljust(16, b"\0"),
            listeners={} if "silent" in flags else {"PLAINTEXT": (f"host{words[0]}", 9092)},
            security_protocols={"PLAINTEXT": 0},
            epoch=next(self.epochs),
            rack=values.get("rack"),
            log_dirs=tuple(directory(f"{n + 1}", words[0]) for n in range(int(values.get("dirs", 1)))),
            features={"metadata.version": (7, int(values.get("metadata", 25)))}
            | ({"eligible.leader.replicas.version": (0, 1)} if "elr" in flags else {}),
            fenced="unfenced" not in flags,
            session_is_alive="alive" in flags,
            previous_broker_epoch=int(values.get("stopped", -1)),
        )

    def event_heartbeat(self, words: list[str]) -> events.Heartbeat:
        offset = split(words[2:])[0].get("offset")
        known = None if offset is None else int(offset)
        return events.Heartbeat(int(words[0]), int(words[1]), "fence" in words, "stop" in words, known)

    def event_silence(self, words: list[str]) -> events.SessionExpired:
        return events.SessionExpired(*map(int, words))

    def event_lose(self, words: list[str]) -> events.LogDirectoriesFailed:
        return events.LogDirectoriesFailed(
            int(words[0]), int(words[1]), [directory(word, words[0]) for word in words[2:]]
        )

    def event_place(self, words: list[str]) -> events.AssignReplicas:
        placed, values = {}, split(words[2:])[0]
        left = tuple(int(one) for one in values.pop("left", "").split(",") if one)
        for replica, where in values.items():
            topic, index = replica.removeprefix("#").split("/")
            placed[int(topic).to_bytes(16), int(index)] = directory(where, words[0])
        return events.AssignReplicas(int(words[0]), int(words[1]), placed, dict.fromkeys(placed, left))

    def event_sync(self, words: list[str]) -> events.AlterPartitions:
        values, flags = split(words[2:])
        changes = []
        for partition, wanted in values.items():
            (topic, index), (epochs, isr) = partition.removeprefix("#").split("/"), wanted.split(":")
            leader_epoch, partition_epoch = epochs.split(".")
            members = [member.split("@") for member in isr.split(",") if member]
            changes.append(
                InSyncChange(
                    int(topic).to_bytes(16),
                    int(index),
                    int(leader_epoch),
                    int(partition_epoch),
                    tuple((int(one[0]), int(one[1]) if len(one) > 1 else NO_BROKER_EPOCH) for one in members),
                    leader_recovery_state=int("recovering" in flags),
                )
            )
        return events.AlterPartitions(int(words[0]), int(words[1]), changes)

    def event_controller(self, words: list[str]) -> events.RegisterController:
        listeners = {"CONTROLLER": (f"host{words[0]}", int(words[1]))}
        return events.RegisterController(
            int(words[0]), b"c" * 16, listeners, {"CONTROLLER": 0}, {"kraft.version": (0, 1)}
        )

    def event_unregister(self, words: list[str]) -> events.UnregisterBroker:
        return events.UnregisterBroker(int(words[0]))

    def event_create(self, words: list[str]) -> events.CreateTopics:
        validate = "validate" in words
        topics = [new_topic(some) for some in parted([word for word in words if word != "validate"])]
        ids = [next(self.ids).to_bytes(16) for _ in topics]
        return events.CreateTopics(topics, ids, 0, whole_creation(topics, 1), validate)

    def event_delete(self, words: list[str]) -> events.DeleteTopics:
        requested = [int(word[1:]).to_bytes(16) if word[0] == "#" else word for word in words]
        return events.DeleteTopics(requested, whole_deletion(requested))

    def event_alter(self, words: list[str]) -> events.AlterConfigs:
        return events.AlterConfigs([config_change(some) for some in parted(words)])

    def event_replace(self, words: list[str]) -> events.AlterConfigs:
        return events.AlterConfigs([config_change(some, replaces=True) for some in parted(words)])

    def event_enlarge(self, words: list[str]) -> events.CreatePartitions:
        validate_only = words[-1] == "validate"
        topics = [more_partitions(some) for some in parted(words[:-1] if validate_only else words)]
        return events.CreatePartitions(topics, 0, whole_enlargement(topics, self.machine.image), validate_only)

    def event_elect(self, words: list[str]) -> events.ElectLeaders:
        election_type = events.ElectionType[words[0].upper()]
        if words[1:] == ["all"]:
            return events.ElectLeaders(election_type, None)
        requested = [word.rsplit("/", 1) for word in words[1:]]
        return events.ElectLeaders(election_type, [(name, [int(index)]) for name, index in requested])

    def event_reassign(self, words: list[str]) -> events.AlterReassignments:
        topics = []
        for word in words:
            if word != "fixed":
                where, target = word.split("=")
                name, index = where.rsplit("/", 1)
                replicas = None if target == "cancel" else [int(broker) for broker in target.split(",") if broker]
                partition = ReassignablePartition(partition_index=int(index), replicas=replicas)
                topics.append(ReassignableTopic(name=name, partitions=[partition]))
        return events.AlterReassignments(topics, "fixed" not in words)

    def event_reassigned(self, words: list[str]) -> events.ListReassignments:
        if words == ["all"]:
            return events.ListReassignments(None)
        requested = [word.rsplit("/", 1) for word in words]
        return events.ListReassignments([(name, [int(index)]) for name, index in requested])

    def event_ids(self, words: list[str]) -> events.AllocateProducerIds:
        return events.AllocateProducerIds(int(words[0]), int(words[1]))

    def event_balance(self, words: list[str]) -> events.BalanceLeaders:
        return events.BalanceLeaders(frozenset(map(int, words)))

    def event_uncleanly(self, _words: list[str]) -> events.ElectUncleanly:
        return events.ElectUncleanly()

    def event_idle(self, _words: list[str]) -> events.WriteNoOp:
        return events.WriteNoOp()

    def event_feature(self, words: list[str]) -> events.UpdateFeatures:
        values, flags = split(words)
        kind = events.UpgradeType[next(iter(flags), "upgrade").upper()]
        updates = [events.FeatureUpdate(name, int(level), kind) for name, level in values.items()]
        return events.UpdateFeatures(updates, controller_id=7)

    def show_topics(self) -> Iterator[str]:
        for name, topic in self.machine.image.topics.by_name.items():
            yield f"{name} #{int.from_bytes(topic.topic_id)}"
            for index, one in topic.partitions.items():
                epochs = f"epochs {one.leader_epoch}/{one.partition_epoch}"
                more = f" eligible {list(one.eligible_leader_replicas)}" if one.eligible_leader_replicas else ""
                more += f" last {list(one.last_known_elr)}" if one.last_known_elr else ""
                more += " recovering" if one.leader_recovery_state else ""
                yield f"  {index}: leader {one.leader} isr {list(one.isr)} of {list(one.replicas)} {epochs}{more}"

    def show_brokers(self) -> Iterator[str]:
        for broker in self.machine.image.cluster.brokers.values():
            state = "fenced" if broker.fenced else "stopping" if broker.in_controlled_shutdown else "running"
            yield f"{broker.id}: {state} epoch {broker.epoch} rack {broker.rack}"

    def show_configs(self) -> Iterator[str]:
        for resource, configs in self.machine.image.configs.by_resource.items():
            yield f"{resource.type} {resource.name!r}: {dict(configs)}"


def directory(word: str, broker: str) -> bytes:
    return LOST_DIRECTORY if word == "lost" else bytes([int(word)]) * 15 + bytes([int(broker) % 256])


def parted(words: list[str]) -> list[list[str]]:
    return [list(some) for semicolon, some in itertools.groupby(words, lambda word: word == ";") if not semicolon]


def split(words: list[str]) -> tuple[dict[str, str], set[str]]:
    values = dict(word.split("=", 1) for word in words if "=" in word)
    return values, {word for word in words if "=" not in word}


def new_topic(words: list[str]) -> CreatableTopic:
    values, _ = split(words[1:])
    replicas = values.pop("replicas", "")
    return CreatableTopic(
        name=words[0],
        num_partitions=int(values.pop("partitions", -1)),
        replication_factor=int(values.pop("rf", -1)),
        assignments=[
            CreatableReplicaAssignment(
                partition_index=index, broker_ids=[int(broker) for broker in some.split(",") if broker]
            )
            for index, some in enumerate(replicas.split("/") if replicas else [])
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in values.items()],
    )


def more_partitions(words: list[str]) -> events.MorePartitions:
    values, _ = split(words[1:])
    replicas = values.get("replicas")
    assignments = None
    if replicas is not None:
        assignments = [
            CreatePartitionsAssignment(broker_ids=[int(broker) for broker in one.split(",") if broker])
            for one in replicas.split("/")
        ]
    return events.MorePartitions(name=words[0], count=int(values["partitions"]), assignments=assignments)


def config_change(words: list[str], *, replaces: bool = False) -> events.ConfigChange:
    kind = {"topic": TOPIC_RESOURCE, "broker": BROKER_RESOURCE}.get(words[0], 99)
    changes: dict[str, str | None] = {}
    items: dict[str, dict[str, str]] = {"+": {}, "-": {}}
    for word in words[2:]:
        name, sign, value = word.partition("=")
        if sign and name[-1] in items:
            items[name[-1]][name[:-1]] = value
        else:
            changes[name.rstrip("-")] = None if word.endswith("-") else value
    resource = ConfigResource(kind, "" if words[1] == "default" else words[1])
    return events.ConfigChange(resource, changes, items["+"], items["-"], replaces)


def show_reply(reply: Any) -> str:
    if isinstance(reply, events.ElectedTopic | events.ReassignedTopic | events.OngoingTopic):
        return f"{reply.name}: {'; '.join(map(show_reply, reply.partitions))}"
    if isinstance(reply, msgspec.Struct):
        fields = msgspec.structs.asdict(reply)
    elif hasattr(reply, "_asdict"):
        fields = reply._asdict()
    else:
        return repr(reply)
    shown = []
    for name, value in fields.items():
        if name == "error_code":
            shown.append(value.name)
        elif isinstance(value, bytes):
            shown.append(f"#{int.from_bytes(value)}")
        elif value not in (None, -1):
            shown.append(f"{name}={value!r}" if isinstance(value, bool | int) or type(value) is tuple else str(value))
    return " ".join(shown)


def show_record(record: Any) -> str:
    blank = type(record)()
    fields = []
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if value != getattr(blank, name):
            fields.append(f"{name}={show_value(value)}")
    return f"{type(record).__name__} {' '.join(fields)}"


def show_value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"#{int.from_bytes(value)}" if not value[0] else value[:1].decode("latin-1").encode().hex()
    if isinstance(value, list):
        return f"[{','.join(map(show_value, value))}]"
    if isinstance(value, msgspec.Struct):
        return "/".join(str(getattr(value, name)) for name in value.__struct_fields__)
    return str(value)


@pytest.mark.parametrize("path", sorted(HERE.glob("cluster_*.txt")), ids=lambda path: path.stem)
def test_the_cluster_machine_answers_as_written(path: Path, request: pytest.FixtureRequest) -> None:
    check_transcript(path, Stage().report, rewrite=request.config.getoption("--rewrite"))

"""The `config/server.properties` that Apache Kafka 4.3 ships starts three nodes: other numbers, and the same keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, NewTopic, Producer
from pybroker.local_cluster.layout import NodeLayout, NodePorts
from pybroker.local_cluster.process import NodeProcess, wait_ready
from pybroker.storage.log_dirs.meta_properties import random_id
from tests.support.processes import free_port

pytestmark = pytest.mark.process

SHIPPED = """\
process.roles=broker,controller
node.id={node_id}
controller.quorum.bootstrap.servers={controllers}
listeners=PLAINTEXT://:{broker},CONTROLLER://:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={data}
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
#log.flush.interval.ms=1000
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""The uncommented keys of the file in their order, with placeholders for numbers, addresses and paths."""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[NodeProcess]]:
    layouts = [
        NodeLayout(number, NodePorts(free_port(), free_port()), True, tmp_path / f"node-{number}")
        for number in (1, 2, 3)
    ]
    controllers = ",".join(f"localhost:{one.ports.controller}" for one in layouts)
    first = ",".join(f"{one.node_id}@localhost:{one.ports.controller}:{random_id()}" for one in layouts)
    cluster_id = random_id()
    for one in layouts:
        one.data.mkdir(parents=True)
        text = SHIPPED.format(
            node_id=one.node_id,
            controllers=controllers,
            broker=one.ports.broker,
            controller=one.ports.controller,
            data=one.data,
        )
        one.settings.write_text(text)
        assert main(["format", "-t", cluster_id, "-c", str(one.settings), "--initial-controllers", first]) == 0
    processes = [NodeProcess(one) for one in layouts]
    try:
        for process in processes:
            process.launch()
        wait_ready(processes, 60)
        yield processes
    finally:
        for process in processes:
            process.kill()


def test_the_shipped_file_starts_a_cluster_of_three(nodes: list[NodeProcess]) -> None:
    servers = ",".join(process.node.address for process in nodes)
    with Admin(servers) as admin, Producer(servers, {"acks": "all"}) as producer:
        assert len(admin.describe_quorum().voters) == 3
        admin.create_topics([NewTopic("t", 1, 3)])
        admin.wait_for_leaders("t")
        assert producer.send("t", b"record").result(60).offset == 0
        (topic,) = admin.describe_topics(["t"])
        assert sorted(topic.partitions[0].replicas) == [1, 2, 3]
    for process in nodes:
        assert "Traceback" not in process.node.log.read_text()

"""`__transaction_state` as Kafka's dump tool reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import confluent_kafka
import pytest

from pybroker.testing import Broker
from tests.conformance.dump_tool import kafkas, ours
from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.wire import Wire

pytestmark = pytest.mark.java
SETTINGS = {"transaction.state.log.num.partitions": "1"}
EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 0, 1, 2, 4


def test_kafkas_dump_tool_reads_every_state_of_a_transactional_id(tmp_path: Path) -> None:
    programs.kafka_tools()
    data = tmp_path / "data"
    with Broker(directory=data, properties=SETTINGS) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("a", b"value", partition=0)
        producer.commit_transaction(60)
        with Wire(broker.bootstrap_servers) as wire:

            def is_complete() -> bool:
                (known,) = wire.call("DescribeTransactions", 0, transactional_ids=["t"]).transaction_states
                return bool(known.transaction_state == "CompleteCommit")

            wait_until(is_complete, within=60, what="the markers are written")
    run = ["--transaction-log-decoder", "--files", str(data / "__transaction_state-0" / f"{0:020}.log")]
    (theirs,) = kafkas([run], tmp_path)
    assert ours(run) == theirs
    records = [json.loads(text) for text in re.findall(r" payload: (\{.*\})$", theirs.out, re.M)]
    assert [record["data"]["transactionStatus"] for record in records] == [
        *(EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)
    ]
    assert {record["version"] for record in records} == {"1"}
    assert records[1]["data"]["transactionPartitions"] == [{"topic": "a", "partitionIds": [0]}]

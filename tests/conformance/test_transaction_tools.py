"""`pybroker transactions` prints what kafka-transactions prints, and ends what it ends, by calls of Admin."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.protocol.errors import ErrorCode
from tests.conformance.conftest import AGAINST_KAFKA, Server, Topic, serving, transactional
from tests.conformance.transactions import OK, Transactional
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until
from tests.support.wire import Wire

TOOL = "org.apache.kafka.tools.TransactionsCommand"
HOUR_MS = 3_600_000


def reported(server: Server, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines that our command prints; it has to succeed."""
    capsys.readouterr()
    status = main(["transactions", "--bootstrap-server", server.bootstrap_servers, *words])
    found = capsys.readouterr()
    assert status == 0, found.err
    return found.out.splitlines()


def kafkas(server: Server, *words: str) -> list[str]:
    """The lines that Kafka's tool prints."""
    programs.kafka_tools()
    return kafka_tools.run(TOOL, "--bootstrap-server", server.bootstrap_servers, *words).stdout.splitlines()


@pytest.fixture
def admin(server: Server) -> Iterator[Admin]:
    with Admin(server.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def ongoing(topic: Topic, producer: Callable[[], Transactional]) -> Transactional:
    """A producer with an open transaction in partition 0 of `topic`."""
    made = producer().init()
    assert made.add(topic.name) == OK
    assert made.write(topic.name, b"a", b"b").error_code == OK
    return made


@pytest.mark.java
def test_what_is_listed_and_described_is_printed_as_kafkas_tool_does(
    ongoing: Transactional, topic: Topic, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = ("list", "--transactional-id-pattern", re.escape(ongoing.id))
    assert reported(server, capsys, *listed) == kafkas(server, *listed)
    described = ("describe", "--transactional-id", ongoing.id)
    ours, theirs = reported(server, capsys, *described), kafkas(server, *described)
    cells = [[cell.strip() for cell in line.split("\t")] for line in (*ours, *theirs)]
    duration = cells[0].index("TransactionDurationMs")
    for row in cells[1::2]:
        assert int(row.pop(duration)) >= 0
    assert cells[:2] == cells[2:]
    producing = ("describe-producers", "--topic", topic.name, "--partition", "0")
    ours = reported(server, capsys, *producing)
    assert ours == kafkas(server, *producing)
    assert len(ours) == 2
    assert ongoing.end(committed=True) == OK


def test_admin_finds_a_transaction_by_every_filter(ongoing: Transactional, topic: Topic, admin: Admin) -> None:
    mine = [one for one in admin.list_transactions() if one.transactional_id == ongoing.id]
    assert [(one.producer_id, one.state) for one in mine] == [(ongoing.producer_id, "Ongoing")]
    assert admin.list_transactions(producer_ids=[ongoing.producer_id]) == mine
    assert admin.list_transactions(pattern=re.escape(ongoing.id)) == mine
    assert mine[0] in admin.list_transactions(states=["Ongoing"])
    assert mine[0] not in admin.list_transactions(states=["Empty"])
    assert mine[0] not in admin.list_transactions(longer_than_ms=HOUR_MS)
    with pytest.raises(ClientError, match="unknown transaction state Never"):
        admin.list_transactions(states=["Never"])

    described = admin.describe_transactions([ongoing.id])[ongoing.id]
    assert (described.state, described.timeout_ms) == ("Ongoing", 60_000)
    assert described.partitions == (TopicPartition(topic.name, 0),)
    assert described.coordinator == mine[0].coordinator
    assert described.began_ms is not None
    with pytest.raises(BrokerError) as refused:
        admin.describe_transactions([ongoing.id, "nobody's"])
    assert refused.value.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert ongoing.end(committed=False) == OK


def test_a_producer_that_is_fenced_writes_no_more_and_its_transaction_is_aborted(
    ongoing: Transactional, topic: Topic, server: Server, admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reported(server, capsys, "force-terminate", "--transactional-id", ongoing.id) == []
    assert ongoing.write(topic.name).error_code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
    assert admin.describe_transactions([ongoing.id])[ongoing.id].state in ("Empty", "CompleteAbort")
    fenced = admin.fence_producers([ongoing.id])[ongoing.id]
    assert fenced[1] > ongoing.epoch or fenced[0] != ongoing.producer_id
    ends = admin.list_offsets({TopicPartition(topic.name, 0): -1}, read_committed=True)
    assert ends[TopicPartition(topic.name, 0)].offset == 3, "two records and a marker"


def test_a_command_that_cannot_be_done_says_why(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*words: str) -> str:
        capsys.readouterr()
        assert main(["transactions", "--bootstrap-server", server.bootstrap_servers, *words]) == 1
        return capsys.readouterr().err

    assert "transactional-id `nobody`: The transactionalId could not be found." in fails(
        "describe", "--transactional-id", "nobody"
    )
    assert "for partition nowhere-0 on leader: " in fails(
        "describe-producers", "--topic", "nowhere", "--partition", "0"
    )
    assert "either with --start-offset" in fails("abort", "--topic", "t", "--partition", "0")
    older = ("abort", "--topic", "t", "--partition", "0", "--producer-id", "1")
    assert "Missing required argument --producer-epoch" in fails(*older)
    assert "Missing required argument --coordinator-epoch" in fails(*older, "--producer-epoch", "0")
    assert "either --topic or --broker-id" in fails("find-hanging")
    assert "--partition argument requires --topic" in fails("find-hanging", "--partition", "0", "--broker-id", "1")


@pytest.mark.java
def test_a_hanging_transaction_is_found_and_aborted(topic_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        serving(
            {"transaction.partition.verification.enable": "false"}, "kafka" if AGAINST_KAFKA else "broker"
        ) as server,
        Wire(server.bootstrap_servers) as wire,
        Admin(server.bootstrap_servers) as admin,
    ):
        admin.create_topics([topic_name])
        admin.wait_for_leaders(topic_name)
        hanging, fine = transactional(wire, server).init(), transactional(wire, server).init()

        def writes(producer: Transactional, when: int) -> bool:
            return bool(producer.write(topic_name, base_timestamp=when).error_code == OK)

        hour_ago = int(time.time() * 1000) - HOUR_MS
        assert fine.add(topic_name) == OK
        for producer in (hanging, fine):
            wait_until(partial(writes, producer, hour_ago), within=60, what="the leader knows that it leads")
        search = ("find-hanging", "--topic", topic_name)
        ours = reported(server, capsys, *search)
        assert ours == kafkas(server, *search)
        assert [line.split("\t")[2].strip() for line in ours] == ["ProducerId", str(hanging.producer_id)]
        assert len(reported(server, capsys, *search, "--max-transaction-timeout", "90")) == 1
        assert len(reported(server, capsys, "find-hanging", "--broker-id", "1")) == 2

        place = ("--topic", topic_name, "--partition", "0")
        assert main(
            ["transactions", "--bootstrap-server", server.bootstrap_servers, "abort", *place, "--start-offset", "7"]
        )
        assert "starting at offset 7" in capsys.readouterr().err
        reported(server, capsys, "abort", *place, "--start-offset", "0")
        assert len(reported(server, capsys, *search)) == 1
        assert fine.end(committed=True) == OK
        fine.wait_for("CompleteCommit")
        ends = admin.list_offsets({TopicPartition(topic_name, 0): -1}, read_committed=True)
        assert ends[TopicPartition(topic_name, 0)].offset == 4

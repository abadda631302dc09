"""A forked child and the clients of its parent: every use raises a sentence, and the parent's clients stay whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.support import repository

PRELUDE = """
import asyncio, contextlib, gc, json, os, signal, sys, threading
from pybroker.client import *
from pybroker.client.errors import ForkedError
from pybroker.testing import AsyncBroker, Broker, Cluster

def public(client):
    of_use = getattr(client, "_in_child", ())
    return [name for name in dir(type(client)) if not name.startswith("_") and name not in of_use]

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program; it ends within a minute, or it hangs."""
    text = PRELUDE + textwrap.dedent(program)
    environment = {**os.environ, "PYTHONPATH": str(repository.ROOT), "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    return subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


MAKERS = {
    "Producer": "Producer(servers)",
    "AsyncProducer": "AsyncProducer(servers)",
    "Consumer": "Consumer(servers, {'group.id': 'g'})",
    "AsyncConsumer": "AsyncConsumer(servers, {'group.id': 'h'})",
    "Admin": "Admin(servers)",
    "AsyncAdmin": "AsyncAdmin(servers)",
    "Fetcher": "Fetcher(servers)",
    "AsyncFetcher": "AsyncFetcher(servers)",
    "ColumnFetcher": "ColumnFetcher(servers)",
    "ConsumeTransformProduce": "ConsumeTransformProduce(servers, ['t'], list, group_id='i', transactional_id='i-1')",
    "Broker": "Broker()",
    "AsyncBroker": "AsyncBroker()",
    "Cluster": "Cluster(1)",
}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_public_attribute_of_an_inherited_client_raises(kind: str) -> None:
    ran = run(f"""
        with Broker() as broker:
            servers = broker.bootstrap_servers
            with Admin(servers) as admin:
                admin.create_topics(["t"])
            client = {MAKERS[kind]}
            child = os.fork()
            if not child:
                texts = set()
                for name in public(client):
                    with contextlib.suppress(ForkedError):
                        getattr(client, name)
                        texts.add(f"{{name}} may be used")
                try:
                    client.close if hasattr(type(client), "close") else client.stop
                except ForkedError as error:
                    texts.add(str(error).replace(str(os.getpid()), "CHILD").replace(str(os.getppid()), "PARENT"))
                print(json.dumps(sorted(texts)), flush=True)
                client = None
                gc.collect()
                sys.exit(0)
            print(ended(child))
            if isinstance(client, AsyncConsumer | AsyncAdmin | AsyncProducer | AsyncFetcher):
                asyncio.run(client.close())
            elif hasattr(client, "close"):
                client.close()
    """)
    assert (ran.stderr, ran.returncode) == ("", 0)
    texts, status = ran.stdout.splitlines()
    sentence = (
        f"this {kind} was created in process PARENT and cannot be used after fork, in process CHILD: create the {kind} "
        "in the child"
    )
    assert (json.loads(texts), status) == ([sentence], "0")


def test_a_child_that_only_ends_leaves_the_parents_clients_whole() -> None:
    ran = run("""
        with Broker() as broker:
            servers = broker.bootstrap_servers
            with Producer(servers) as producer, Admin(servers) as admin, Fetcher(servers) as fetcher:
                admin.create_topics(["t"])
                calls = []
                producer.send("t", b"0", on_delivery=lambda *it: calls.append(it)).result()
                fetcher.assign({TopicPartition("t", 0): EARLIEST})
                for number in range(1, 6):
                    assert [record.value for record in fetcher.poll(60)] == [b"%d" % (number - 1)]
                    child = os.fork()
                    if not child:
                        del producer, admin, fetcher
                        gc.collect()
                        sys.exit(0)
                    assert ended(child) == 0
                    producer.send("t", b"%d" % number, on_delivery=lambda *it: calls.append(it)).result()
                    assert admin.list_topics() == ["t"]
                producer.flush()
                assert [metadata.offset for _, metadata in calls] == list(range(6))
                print("whole")
    """)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("whole\n", "", 0)


def test_a_child_has_clients_of_its_own_beside_those_of_the_parent() -> None:
    ran = run("""
        with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"parent").result()
            pending = Producer(broker.bootstrap_servers, {"linger.ms": 60_000})
            delivery = pending.send("t", b"later")
            child = os.fork()
            if not child:
                for use in (delivery.result, delivery.done, delivery.exception):
                    try:
                        use()
                    except ForkedError as error:
                        print("refused", flush=True)
                with Producer(broker.bootstrap_servers) as own:
                    print(own.send("t", b"child").result().offset, flush=True)
                os._exit(0)
            assert ended(child) == 0
            pending.close()
            print(delivery.result().offset, flush=True)
    """)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("refused\nrefused\nrefused\n1\n2\n", "", 0)


def test_workers_of_multiprocessing_get_the_sentence() -> None:
    ran = run("""
        import multiprocessing

        def work(answers):
            for name in ("send", "flush", "close"):
                try:
                    getattr(producer, name)
                except ForkedError as error:
                    answers.put(str(error).partition(" was ")[0])

        with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"x").result()
            forked = multiprocessing.get_context("fork")
            answers = forked.Queue()
            worker = forked.Process(target=work, args=(answers,))
            worker.start()
            print([answers.get(timeout=60) for _ in range(3)])
            worker.join()
            print(worker.exitcode, producer.send("t", b"y").result().offset)
    """)
    assert (ran.stdout, ran.stderr) == (f"{['this Producer'] * 3}\n0 1\n", "")


def test_a_block_that_the_parent_began_ends_in_the_child_without_effect() -> None:
    ran = run("""
        def in_blocks(broker):
            with Producer(broker.bootstrap_servers) as producer, Consumer(broker.bootstrap_servers):
                producer.send("t", b"x").result()
                child = os.fork()
                if not child:
                    sys.exit(7)
                print(ended(child), producer.send("t", b"y").result().offset)

        with Broker() as broker:
            in_blocks(broker)
    """)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("7 1\n", "", 0)

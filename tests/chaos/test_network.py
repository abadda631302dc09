from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.chaos.network import CLIENTS, Network
from tests.chaos.rights import network_fault

pytestmark = pytest.mark.process

_PORT = 9092
_RECEIVE = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.bind((sys.argv[1], int(sys.argv[2])))
    print("bound", flush=True)
    while True:
        text, peer = here.recvfrom(100)
        print(text.decode(), flush=True)
        here.sendto(text, peer)
"""


@pytest.fixture
def network() -> Iterator[Network]:
    if network_fault():
        pytest.skip(network_fault())
    made = Network(1)
    made.begin()
    yield made
    made.end()


@pytest.fixture
def node(network: Network) -> Iterator[subprocess.Popen[str]]:
    """A process in a namespace of its own that prints each packet and sends it back."""
    words = [*network.wrapper(1), sys.executable, "-c", _RECEIVE, network.address(1), str(_PORT)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "bound\n"
        yield process
        process.kill()


def test_packets_are_dropped_one_way_and_come_again(network: Network, node: subprocess.Popen[str]) -> None:
    assert node.stdout is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.connect((network.address(1), _PORT))
        here.settimeout(60)
        here.send(b"there and back")
        assert here.recv(100) == b"there and back"
        network.drop(1, CLIENTS)
        here.send(b"there alone")
        assert [node.stdout.readline() for _ in range(2)] == ["there and back\n", "there alone\n"]
        network.mend()
        here.send(b"mended")
        assert here.recv(100) == b"mended", "the answer before it was dropped"
        network.drop(CLIENTS, 1)
        # The kernel says at once that the way is closed, or says nothing.
        with contextlib.suppress(OSError):
            here.send(b"nowhere")
        network.mend()
        here.send(b"after all")
        assert here.recv(100) == b"after all"
        assert [node.stdout.readline() for _ in range(2)] == ["mended\n", "after all\n"]


def test_what_was_made_is_removed(network: Network) -> None:
    name = network.wrapper(1)[-1]
    assert name in _namespaces()
    network.end()
    assert name not in _namespaces()


def _namespaces() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in listed.stdout.splitlines()]

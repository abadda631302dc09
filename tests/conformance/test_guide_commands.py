"""The commands of README and guides run as they are printed: in a shell, in their order, against a broker.

A page's blocks are one program. A test replaces addresses, directories and sizes that are the reader's, and nothing
else. A broker that the page starts in the foreground runs in the background; the next command waits for its ready line.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from pybench.peers import java
from pybroker.client import Admin, Producer
from pybroker.testing import Broker
from tests.support import guides, programs
from tests.support.repository import ROOT

pytestmark = [pytest.mark.process, pytest.mark.java]

HERE = "tests/conformance/test_guide_commands.py"
Replaced = Mapping[str, str]
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PRELUDE = """
set -euo pipefail
started=() outputs=()
trap 'kill -TERM "${started[@]}" 2>/dev/null || true; wait' EXIT
background() { exec {output}< <(exec "$@"); started+=($!) outputs+=("$output"); }
all_ready() { for output in "${outputs[@]}"; do read -r line <&"$output"; echo "$line"; done; outputs=(); }
foreground() { background "$@"; all_ready; }
"""
FOREGROUND = re.compile(r"^(pybroker (?:cluster )?start (?!-d)[^&\n#]*?)(?:&|#.*)?$", re.MULTILINE)
KAFKA = re.compile(r"\bkafka-([a-z-]+)\.sh\b")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nothing listens at."""
    while True:
        first = free_port()
        with ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return first


def at(broker: Broker) -> dict[str, str]:
    return dict.fromkeys(guides.SERVERS, broker.bootstrap_servers)


def write_properties(page: str, start: str, path: Path, replace: Replaced | None = None) -> None:
    """Write the first block of properties of a page that begins so, as the page has the reader write it."""
    code = next(it.code for it in guides.blocks(page) if it.language == "properties" and it.code.startswith(start))
    for old, new in (replace or {}).items():
        code = code.replace(old, new)
    path.write_text(code)


@contextmanager
def plain(page: str, directory: Path) -> Iterator[Replaced]:
    """A broker as it is."""
    with Broker(properties={"telemetry.receivers": "last-values"}) as broker:
        yield at(broker)


@contextmanager
def authorized(page: str, directory: Path) -> Iterator[Replaced]:
    """A broker with an authorizer."""
    with Broker(properties=AUTHORIZED) as broker:
        yield at(broker)


@contextmanager
def readme(page: str, directory: Path) -> Iterator[Replaced]:
    """Nothing runs: the page starts a broker. It sends fewer records."""
    yield {"127.0.0.1:9092": f"127.0.0.1:{free_port()}", "1000000": "1000"}


@contextmanager
def local_cluster(page: str, directory: Path) -> Iterator[Replaced]:
    """Nothing runs: the page starts a cluster, here at any ports."""
    yield {"start --brokers 3": "start --brokers 3 --port 0"}


@contextmanager
def console(page: str, directory: Path) -> Iterator[Replaced]:
    """Lines to send; consumers that nothing else ends do so after the records that there are."""
    (directory / "lines.txt").write_text("".join(f'{{"value": {number}}}\n' for number in range(20)))
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["orders"])
        yield {**at(broker), "--from-beginning": "--from-beginning --max-messages 20", "| jq": "| jq -e"}


@contextmanager
def stopped_logs(page: str, directory: Path) -> Iterator[Replaced]:
    """The logs of a broker that is stopped."""
    with Broker(directory=directory / "data") as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("orders", b"x")
    yield {"/var/lib/pybroker ": f"{directory}/data ", "/var/lib/pybroker\n": f"{directory}/data\n"}


@contextmanager
def measured(page: str, directory: Path) -> Iterator[Replaced]:
    """A broker with an admin listener."""
    port = free_port()
    with Broker(properties={"admin.http.listener": f"127.0.0.1:{port}"}):
        yield {"curl http://127.0.0.1:9404": f"curl --fail --silent --show-error http://127.0.0.1:{port}"}


@contextmanager
def operated(page: str, directory: Path) -> Iterator[Replaced]:
    """A broker, and the file of another one that the page starts and stops."""
    properties = f"listeners=PLAINTEXT://127.0.0.1:{free_port()}\nlog.dirs={directory}/data\n"
    (directory / "server.properties").write_text(properties)
    with Broker(num_network_threads=3) as broker:
        yield {
            **at(broker),
            "/etc/pybroker/": "",
            "/var/log/pybroker/": "",
            "/run/": "",
            "pybroker top": "pybroker top --once",
            # As after the loss of the machine.
            "pybroker snapshot restore": "rm -r data && mkdir data && pybroker snapshot restore",
        }


@contextmanager
def secured(page: str, directory: Path) -> Iterator[Replaced]:
    """Nothing runs: the page makes keys and starts a broker, here at another port."""
    address = f"127.0.0.1:{free_port()}"
    write_properties(page, "listeners=", directory / "server.properties", {"127.0.0.1:9094": address})
    write_properties(page, "security.protocol=", directory / "client.properties")
    yield {"127.0.0.1:9094": address}


@contextmanager
def secured_nodes(page: str, directory: Path) -> Iterator[Replaced]:
    """Nothing runs: the page makes keys and starts three nodes, here at other ports."""
    first = free_ports(6)
    ports = {
        f"127.0.0.1:9{n}9{end}": f"127.0.0.1:{first + n + after}" for n in (1, 2, 3) for end, after in ((2, -1), (3, 2))
    }
    write_properties(page, "process.roles=", directory / "common.properties", ports)
    write_properties(page, "security.protocol=", directory / "admin.properties")
    start = "pybroker start --config node-$n.properties"
    nodes = {f"{start} &": f"background {start}", 'ask="': 'all_ready\nask="'}
    yield {**nodes, **ports, "9${n}92": f"$(({first - 1} + n))", "9${n}93": f"$(({first + 2} + n))"}


@contextmanager
def users(page: str, directory: Path) -> Iterator[Replaced]:
    """A broker with users and tokens, a listener that needs no proof, and the settings of a node to be formatted."""
    (directory / "server.properties").write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={directory}/data\n")
    tokens = {"delegation.token.secret.key": "long and random"}
    with Broker() as open_one, Broker(security="SASL_PLAINTEXT", properties=tokens) as broker:
        lines = (f"{key}={value}\n" for key, value in broker.client_properties("alice").items())
        (directory / "alice.properties").write_text("".join(line for line in lines if "bootstrap" not in line))
        yield {**at(broker), "127.0.0.1:9095": open_one.bootstrap_servers}


@contextmanager
def moved(page: str, directory: Path) -> Iterator[Replaced]:
    """The file of a node."""
    (directory / "server.properties").write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={directory}/data\n")
    yield {}


SITUATIONS: dict[str, Callable[[str, Path], AbstractContextManager[Replaced]]] = {
    "README.md": readme,
    "docs/guides/authorization.md": authorized,
    "docs/guides/client-metrics.md": plain,
    "docs/guides/cluster.md": local_cluster,
    "docs/guides/console.md": console,
    "docs/guides/damage.md": stopped_logs,
    "docs/guides/metrics.md": measured,
    "docs/guides/moving.md": moved,
    "docs/guides/operate.md": operated,
    "docs/guides/quotas.md": plain,
    "docs/guides/secured-cluster.md": secured_nodes,
    "docs/guides/streams-applications.md": plain,
    "docs/guides/tls.md": secured,
    "docs/guides/users.md": users,
}


def commands_of(page: str) -> list[guides.Block]:
    return [block for block in guides.blocks(page) if block.test == HERE]


def add_kafkas_tools(code: str, folder: Path) -> None:
    """Put the scripts of Kafka that a page names into a folder of the search path."""
    for tool in set(KAFKA.findall(code)):
        programs.kafka_tools()
        script = folder / f"kafka-{tool}.sh"
        words = " ".join(f"'{word}'" for word in java.short_java_command(java.TOOLS[tool]))
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)


@pytest.mark.parametrize("page", SITUATIONS)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    blocks = commands_of(page)
    assert blocks, "a page without such blocks has no situation"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pybroker").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pybroker.cli.main "$@"\n')
    (tmp_path / "bin" / "pybench").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pybench.main "$@"\n')
    for script in (tmp_path / "bin").iterdir():
        script.chmod(0o755)
    with SITUATIONS[page](page, tmp_path) as replaced:
        code = "\n".join(block.code for block in blocks)
        for old, new in replaced.items():
            code = code.replace(old, new)
        add_kafkas_tools(code, tmp_path / "bin")
        code = FOREGROUND.sub(r"foreground \1", code)
        paths = os.pathsep.join([str(ROOT), str(ROOT / "bench"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "PYTHONPATH": paths}
        ran = subprocess.run(
            ["bash", "-c", PRELUDE + "set -x\n" + code],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    assert "Traceback" not in ran.stderr


def test_every_page_with_such_blocks_has_a_situation() -> None:
    assert [page for page in guides.pages() if commands_of(page)] == sorted(SITUATIONS)

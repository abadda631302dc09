"""The processes of a local cluster: `pybroker cluster start`, `status`, `stop`, `kill`, `pause`, `resume`, `restart`.

Owns options and output. `start` stays in the foreground and stops all brokers when it ends. The other commands act on
the processes of the cluster's directory, from any terminal.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.config.errors import ConfigError
from pybroker.config.properties import parse_overrides
from pybroker.local_cluster.layout import NodePorts, build_layout, lay_out, takes_anybody
from pybroker.local_cluster.members import wait_members
from pybroker.local_cluster.process import (
    NodeFailedError,
    NodeLateError,
    NodeProcess,
    ProcessMark,
    last_words,
    wait_ready,
)
from pybroker.local_cluster.state_file import (
    ClusterState,
    NodeState,
    StateFileError,
    locked,
    read_state,
    write_state,
)
from pybroker.storage.errors import StorageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pybroker.local_cluster.layout import NodeLayout

_HOST = "127.0.0.1"
_PORT = 9092
_CONTROLLERS_ABOVE = 10_000
"""Offset of a controller's port from its broker's, which leaves ports for 10,000 brokers."""
_LAST_PORT = 65535
_START_S = 60.0
_STOP_S = 60.0
_POLL_INTERVAL_S = 0.05
_QUORUM_CHECK_S = 1.0
_CONTINUES = (signal.SIGTERM, signal.SIGCONT)  # a paused process handles a signal when it continues


def add_subcommands(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommands."""

    def add(name: str, execute: Callable[[argparse.Namespace], int], what: str) -> argparse.ArgumentParser:
        parser = subcommands.add_parser(name, help=what, description=what, allow_abbrev=False)
        parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the directory of the cluster")
        parser.set_defaults(execute=execute)
        return parser

    start = add("start", _start, "start a cluster and stay in the foreground until SIGINT or SIGTERM stops it")
    start.add_argument(
        "--brokers", type=int, metavar="N", help="number of brokers (default: 3, or the number of an existing cluster)"
    )
    start.add_argument(
        "--port",
        type=int,
        metavar="PORT",
        help=f"port of broker 1; the other brokers have the next ports, controllers {_CONTROLLERS_ABOVE} above; "
        f"0: any free ports (default: {_PORT})",
    )
    start.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting for every broker"
    )
    add_json_option(add("status", _status, "print the brokers, their addresses and processes"))
    add("stop", _stop, "stop all brokers cleanly")
    for name, execute, what in (
        ("kill", _kill, "kill a broker (SIGKILL)"),
        ("pause", _pause, "pause the process of a broker (SIGSTOP)"),
        ("resume", _resume, "resume a paused broker (SIGCONT)"),
        ("restart", _restart, "restart a broker: stop it cleanly if it runs, and start it"),
    ):
        add(name, execute, what).add_argument("broker", type=int, metavar="N", help="the broker's id")


def _start(arguments: argparse.Namespace) -> int:
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # From here on signals stop the cluster in order, also during its start. Brokers do not inherit the handlers.
        signal.signal(number, lambda *_: stopping.set())
    directory = arguments.data.absolute()
    try:
        given = parse_overrides(arguments.override)
        # Checked before anything is created: a rejected start leaves no files.
        _free_ports(directory, read_state(directory), arguments)
        directory.mkdir(parents=True, exist_ok=True)
        nodes = _begin(directory, arguments, given)
    except (ConfigError, StorageError, StateFileError, NodeFailedError, OSError) as error:
        raise CommandError(str(error)) from None
    print(f"bootstrap servers: {','.join(node.address for node in nodes)}", flush=True)
    print(f"data: {directory}; Ctrl-C stops the cluster", flush=True)
    known = {node.node_id for node in nodes}
    while not stopping.wait(_POLL_INTERVAL_S * 4):
        state = read_state(directory)
        running = _running(state)
        for node_id in sorted(known - running) if state is None or not state.stopping else ():
            print(f"broker {node_id} has ended; `pybroker cluster restart {node_id}` starts it", flush=True)
        if known and not running:
            return 0  # `pybroker cluster stop` has ended them
        known = running
    _end_all(directory)
    return 0


def _begin(directory: Path, arguments: argparse.Namespace, given: Mapping[str, str]) -> tuple[NodeLayout, ...]:
    """Start the brokers of a directory, including new ones. Returns all when they are ready."""
    with locked(directory):
        nodes = build_layout(directory, _assigned(_free_ports(directory, read_state(directory), arguments)))
        cluster_id = lay_out(nodes, given)
        processes = [NodeProcess(node) for node in nodes]
        try:
            for process in processes:
                process.launch()
            states = tuple(_state_of(process) for process in processes)
            write_state(directory, ClusterState(cluster_id, states))
            wait_ready(processes, _START_S)
            if takes_anybody(given):
                wait_members(nodes, {}, _START_S)
        except BaseException:
            for process in processes:
                process.kill()
            raise
    return nodes


def _free_ports(directory: Path, state: ClusterState | None, arguments: argparse.Namespace) -> list[NodePorts]:
    """Return the ports of each broker, 0 for any free one. Raises CommandError where the cluster cannot start."""
    if _running(state):
        raise CommandError(f"the cluster in {directory} runs already; `pybroker cluster status` shows it")
    ports = _ports(state, arguments.brokers, arguments.port)
    for node_id, its in enumerate(ports, 1):
        for port, use in (
            (its.broker, ""),
            (its.controller, f", where the controller of broker {node_id} listens, {_CONTROLLERS_ABOVE} above it"),
        ):
            if port and not _is_free(port):
                another = "--port names another one for broker 1, 0 any"
                raise CommandError(f"port {port} of {_HOST} is taken{use}; {another}")
    return ports


def _ports(state: ClusterState | None, count: int | None, first: int | None) -> list[NodePorts]:
    """Return the ports of each broker: the previous ones, and for new brokers the following ones."""
    known = [] if state is None else list(state.nodes)
    wanted = (len(known) or 3) if count is None else count
    if wanted < max(1, len(known)):
        raise CommandError(f"--brokers {wanted}: expected at least {max(1, len(known))}, which the directory has")
    begin = _PORT if first is None else first
    last = _LAST_PORT - _CONTROLLERS_ABOVE - wanted + 1
    if not 0 <= begin <= last:
        raise CommandError(
            f"--port {begin}: expected a port up to {last}, as controllers listen {_CONTROLLERS_ABOVE} above it, or 0"
        )
    ports = []
    for index in range(wanted):
        if index < len(known) and first is None:
            ports.append(NodePorts(known[index].broker_port, known[index].controller_port))
        else:
            ports.append(NodePorts(begin + index, begin + _CONTROLLERS_ABOVE + index) if begin else NodePorts(0, 0))
    return ports


def _assigned(ports: Sequence[NodePorts]) -> list[NodePorts]:
    """Replace 0 by free ports. All are reserved before one is released, so none is returned twice."""
    with ExitStack() as stack:
        return [NodePorts(its.broker or _free_port(stack), its.controller or _free_port(stack)) for its in ports]


def _free_port(stack: ExitStack) -> int:
    bound = stack.enter_context(socket.socket())
    bound.bind((_HOST, 0))
    return int(bound.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((_HOST, port))
        except OSError:
            return False
        return True


def _status(arguments: argparse.Namespace) -> int:
    state = _known(arguments)
    if arguments.json:
        print_json({"clusterId": state.cluster_id, "brokers": [_as_json(node) for node in state.nodes]})
        return 0
    print(f"cluster {state.cluster_id} in {arguments.data.absolute()}")
    for node in state.nodes:
        mark = _mark(node)
        what = f"process {node.pid}" if mark.is_alive() else "not running"
        if mark.is_alive() and mark.is_paused():
            what += ", paused"
        print(f"broker {node.node_id}  {_HOST}:{node.broker_port}  {what}")
    return 0


def _as_json(node: NodeState) -> dict[str, object]:
    mark = _mark(node)
    lives = mark.is_alive()
    return {
        "id": node.node_id,
        "address": f"{_HOST}:{node.broker_port}",
        "process": node.pid if lives else None,
        "paused": lives and mark.is_paused(),
    }


def _stop(arguments: argparse.Namespace) -> int:
    _known(arguments)
    directory = arguments.data.absolute()
    with locked(directory):
        # The program that started the brokers detects that they were stopped on purpose.
        write_state(directory, msgspec.structs.replace(_known(arguments), stopping=True))
    _end_all(directory)
    return 0


def _kill(arguments: argparse.Namespace) -> int:
    mark = _mark(_node(arguments))
    mark.send(signal.SIGKILL)
    _wait_ended([mark])
    return 0


def _pause(arguments: argparse.Namespace) -> int:
    _mark(_node(arguments)).send(signal.SIGSTOP)
    return 0


def _resume(arguments: argparse.Namespace) -> int:
    _mark(_node(arguments, running=False)).send(signal.SIGCONT)
    return 0


def _restart(arguments: argparse.Namespace) -> int:
    node = _node(arguments, running=False)
    directory = arguments.data.absolute()
    _end([_mark(node)])
    with locked(directory):
        state = _known(arguments)
        layout = build_layout(directory, [NodePorts(one.broker_port, one.controller_port) for one in state.nodes])
        process = NodeProcess(layout[node.node_id - 1])
        try:
            process.launch()
            write_state(directory, state.replace(_state_of(process)))
        except OSError as error:
            process.kill()
            raise CommandError(str(error)) from None
    # Without the lock, so that another terminal can restart the brokers that this one waits for.
    try:
        _wait_ready(process, frozenset(one.node_id for one in layout if one.is_voter), arguments)
    except NodeFailedError as error:
        process.kill()
        raise CommandError(str(error)) from None
    finally:
        process.leave()
    return 0


def _wait_ready(process: NodeProcess, voters: frozenset[int], arguments: argparse.Namespace) -> None:
    """Wait until a broker is ready. Raises NodeFailedError. Time without a controller quorum does not count."""
    deadline = time.monotonic() + _START_S
    printed = ""
    while True:
        try:
            wait_ready([process], _QUORUM_CHECK_S)
            return
        except NodeLateError:
            lacking = _lacking_quorum(_known(arguments).nodes, voters)
            if lacking is None:
                if time.monotonic() > deadline:
                    log = process.node.log
                    raise NodeLateError(
                        f"broker {process.node.node_id} was not ready within {_START_S:g} s; its log {log} ends with:\n"
                        f"{last_words(log)}"
                    ) from None
                continue
        deadline = time.monotonic() + _START_S
        if lacking != printed:
            print(f"broker {process.node.node_id} waits for a quorum: {lacking}", flush=True)
            printed = lacking


def _lacking_quorum(nodes: Iterable[NodeState], voters: frozenset[int]) -> str | None:
    """Return why the controllers among `nodes` cannot form a quorum, None where enough of their processes run."""
    marks = {node.node_id: _mark(node) for node in nodes if node.node_id in voters}
    absent = [node_id for node_id, mark in marks.items() if not mark.is_alive() or mark.is_paused()]
    needed = len(voters) // 2 + 1
    running = len(voters) - len(absent)
    if running >= needed:
        return None
    return (
        f"{running} of {len(voters)} controllers run, {needed} are needed. Not running or paused: "
        f"{', '.join(map(str, absent))}; `pybroker cluster restart {absent[0]}` starts one"
    )


def _known(arguments: argparse.Namespace) -> ClusterState:
    try:
        state = read_state(arguments.data.absolute())
    except (StateFileError, OSError) as error:
        raise CommandError(str(error)) from None
    if state is None:
        raise CommandError(f"there is no cluster in {arguments.data.absolute()}; `pybroker cluster start` makes one")
    return state


def _node(arguments: argparse.Namespace, *, running: bool = True) -> NodeState:
    state = _known(arguments)
    for node in state.nodes:
        if node.node_id == arguments.broker:
            if running and not _mark(node).is_alive():
                raise CommandError(f"broker {node.node_id} is not running")
            return node
    known = ", ".join(str(node.node_id) for node in state.nodes)
    raise CommandError(f"there is no broker {arguments.broker}; the cluster has {known}")


def _running(state: ClusterState | None) -> set[int]:
    return {node.node_id for node in state.nodes if _mark(node).is_alive()} if state else set()


def _end_all(directory: Path) -> None:
    with locked(directory):
        state = read_state(directory)
        _end([_mark(node) for node in state.nodes] if state else [])


def _end(marks: Sequence[ProcessMark]) -> None:
    """Stop processes cleanly. One that does not end is killed, and CommandError raised."""
    for mark in marks:
        for number in _CONTINUES:
            mark.send(number)
    _wait_ended(marks)


def _wait_ended(marks: Iterable[ProcessMark]) -> None:
    deadline = time.monotonic() + _STOP_S
    for mark in marks:
        while mark.is_alive():
            if time.monotonic() > deadline:
                mark.send(signal.SIGKILL)
                raise CommandError(f"process {mark.pid} did not end within {_STOP_S:g} s and was killed")
            time.sleep(_POLL_INTERVAL_S)


def _mark(node: NodeState) -> ProcessMark:
    return ProcessMark(node.pid, node.started)


def _state_of(process: NodeProcess) -> NodeState:
    mark = process.mark or ProcessMark(0, 0)
    node = process.node
    return NodeState(node.node_id, node.ports.broker, node.ports.controller, mark.pid, mark.started)

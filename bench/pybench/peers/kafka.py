"""A single-node Apache Kafka: KRaft combined mode, default settings, loopback, ports of its own.

Owns the node's directory, configuration file, process and readiness. Used as a peer in comparisons and as the other
side of client tests: `with Kafka() as kafka: ... kafka.bootstrap_servers`.
"""

from __future__ import annotations

import base64
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pybench.peers.errors import StartError
from pybench.peers.free_ports import free_ports
from pybench.peers.java import java_command, run_java_tool
from pybench.peers.server_log import SERVER_LOG, TAIL_CHARACTERS, log_tail

SERVER_OPTIONS = (
    # The options of Kafka's own start scripts (bin/kafka-server-start.sh, bin/kafka-run-class.sh).
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
_START_TRIES = 4


class Kafka:
    """One Apache Kafka node from `start` to `stop`. Removes its directory unless the caller provided it."""

    def __init__(
        self,
        directory: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        beside: str = "",
        ready_timeout_s: float = 60,
    ) -> None:
        """`beside` is an additional listener such as `SSL://127.0.0.1:9094`."""
        self._beside = f",{beside}" if beside else ""
        self._keep = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="kafka-peer-"))
        self._overrides = dict(overrides or {})
        self._ready_timeout_s = ready_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: `127.0.0.1:<port>`."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        if self._process is None:
            raise StartError("this Kafka node is not running")
        return self._process.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of its processes: one."""
        return (self.pid,)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The only log directory."""
        return (self.log_directory,)

    @property
    def log_directory(self) -> Path:
        """The log directory."""
        return self.directory / "data"

    def start(self) -> Self:
        """Format new storage, start the node, and return when it responds to ApiVersions. Raises StartError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for attempt in range(_START_TRIES):
            self.port, controller_port = free_ports(2)
            config = self._write_config(controller_port)
            if not (self.log_directory / "meta.properties").exists():
                self._format(config)
            with (self.directory / SERVER_LOG).open("ab") as log:
                self._process = subprocess.Popen(
                    [*java_command("kafka.Kafka", options=SERVER_OPTIONS, log_level="info"), str(config)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            if self._became_ready(last_try=attempt == _START_TRIES - 1):
                return self
        raise StartError(f"Apache Kafka found no free port in {_START_TRIES} tries")

    def stop(self) -> None:
        """Stop the node by SIGTERM to its process id (SIGKILL after 30 s). Removes its directory if it created it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self) -> None:
        """Kill the node by SIGKILL. Unsynced data remains in the page cache or is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _write_config(self, controller_port: int) -> Path:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}{self._beside}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}{self._beside}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT",
            "log.dirs": str(self.log_directory),
            # The defaults require three brokers. The server.properties of the distribution sets these four.
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self._overrides,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def _format(self, config: Path) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if cluster_id.startswith("-"):
            cluster_id = "k" + cluster_id[1:]  # a leading dash reads as an option
        done = run_java_tool("storage", "format", "-t", cluster_id, "-c", str(config))
        if done.returncode != 0:
            raise StartError(
                f"Kafka's storage tool refused {config}: {(done.stderr or done.stdout).strip()[-TAIL_CHARACTERS:]}"
            )

    def _became_ready(self, *, last_try: bool) -> bool:
        """Return True if the node is ready, False if a port was in use and a retry makes sense."""
        process = self._process
        assert process is not None
        deadline = time.monotonic() + self._ready_timeout_s
        while time.monotonic() < deadline:
            if process.poll() is not None:
                if "BindException" in log_tail(self.directory) and not last_try:
                    return False
                raise StartError(f"Apache Kafka ended with status {process.returncode}:\n{log_tail(self.directory)}")
            if responds_api_versions("127.0.0.1", self.port):
                return True
            time.sleep(0.02)
        self.stop()
        raise StartError(f"Apache Kafka was not ready after {self._ready_timeout_s:.0f} s:\n{log_tail(self.directory)}")


def responds_api_versions(host: str, port: int, timeout_s: float = 2) -> bool:
    """Return whether a server responds to ApiVersions (key 18, version 0) with error code 0."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            response = b""
            while len(response) < 10:
                chunk = connection.recv(4096)
                if not chunk:
                    return False
                response += chunk
    except OSError:
        return False
    _size, correlation_id, error_code = struct.unpack_from(">iih", response)
    return bool(correlation_id == 7 and error_code == 0)

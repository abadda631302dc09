"""Limits of the process, the clock, and the kernel settings that affect a broker.

Owns the recommended values and their reasons. Must not change any setting.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from typing import TYPE_CHECKING

import pybroker
from pybroker.cli.doctor.finding import FAIL, OK, WARN, Finding
from pybroker.net.descriptors import TooFewDescriptorsError, connections_allowed, divide
from pybroker.storage.log_dirs.meta_properties import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.cli.doctor.directories import LogFiles
    from pybroker.cli.doctor.machine import Machine
    from pybroker.config.broker import BrokerConfig

_FEW_DESCRIPTORS = 4096
_SLACK_S = 60.0
_DAY_S = 86_400.0
_NOT_SYNCHRONIZED = 5
_TIMEX_BYTES = 512
_MAPS_OF_A_SEGMENT = 2
_SWAPPINESS = 10


def check_descriptors(config: BrokerConfig, logs: LogFiles) -> Finding:
    """Compare the limit of file descriptors with connections and logs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = [("unlimited" if limit == resource.RLIM_INFINITY else str(limit)) for limit in (soft, hard)]
    words = f"soft limit {shown[0]}, raised at start to the hard limit {shown[1]}"
    advice = "raise the limit: LimitNOFILE= of the unit, or ulimit -Hn; docs/guides/limits.md explains the numbers"
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        shares = divide()
    except (OSError, ValueError, TooFewDescriptorsError) as error:
        return Finding(FAIL, "descriptors", f"{words}: {error}", advice)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    connections, _ = connections_allowed(shares, config.max_connections)
    words = f"{words}: {connections} connections, {shares.log_files} open files of logs, {logs.partitions} partitions"
    if logs.partitions > shares.log_files or (hard != resource.RLIM_INFINITY and hard < _FEW_DESCRIPTORS):
        return Finding(WARN, "descriptors", words, advice)
    return Finding(OK, "descriptors", words)


def check_clock(config: BrokerConfig, machine: Machine) -> Iterator[Finding]:
    """Compare the wall clock with earlier timestamps, and check whether the kernel reports it as synchronized."""
    now = time.time()
    advice = (
        "set the clock, and keep it synchronized (chrony, systemd-timesyncd): retention and timestamps depend on it"
    )
    written = [os.stat(pybroker.__file__).st_mtime - _DAY_S]
    for directory in config.log_directories:
        for name in (FILE_NAME, "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            try:
                written.append((directory / name).stat().st_mtime)
            except OSError:
                continue
    if max(written) > now + _SLACK_S:
        late = max(written) - now
        yield Finding(FAIL, "clock", f"files have timestamps {late:.0f} s ahead of this clock", advice)
    else:
        yield Finding(OK, "clock", time.strftime("%Y-%m-%dT%H:%M:%SZ, later than all checked files", time.gmtime(now)))
    up = machine.text("proc/uptime")
    if up is not None and now - float(up.split()[0]) < 0:
        yield Finding(FAIL, "clock", "the uptime of the machine exceeds the time since 1970", advice)
    if _is_unsynchronized():
        yield Finding(WARN, "clock", "the kernel reports that the clock is not synchronized", advice)


def _is_unsynchronized() -> bool:
    try:
        return bool(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)) == _NOT_SYNCHRONIZED)
    except (OSError, AttributeError):
        return False


def check_kernel(config: BrokerConfig, machine: Machine, logs: LogFiles) -> Iterator[Finding]:
    """Check the kernel's settings. Settings that this system lacks are skipped."""
    yield from _check_congestion(config, machine)
    maps = machine.number("proc/sys/vm/max_map_count")
    needed = _MAPS_OF_A_SEGMENT * logs.segments
    if maps is not None:
        words = f"vm.max_map_count is {maps}; {logs.segments} segments may map {needed} index files"
        yield _checked(maps >= needed * 2, "mappings", words, f"sysctl -w vm.max_map_count={max(needed * 4, 262_144)}")
    swappiness = machine.number("proc/sys/vm/swappiness")
    if swappiness is not None and len((machine.text("proc/swaps") or "").splitlines()) > 1:
        words = f"vm.swappiness is {swappiness}, with swap in use"
        yield _checked(
            swappiness <= _SWAPPINESS, "swapping", words, "sysctl -w vm.swappiness=1: swapping pauses a broker"
        )
    backlog = machine.number("proc/sys/net/core/somaxconn")
    if backlog is not None:
        requested = config.socket_listen_backlog_size
        words = f"net.core.somaxconn is {backlog}, socket.listen.backlog.size {requested}"
        yield _checked(backlog >= requested, "backlog", words, f"sysctl -w net.core.somaxconn={requested}")
    for name, requested in (
        ("wmem_max", config.socket_send_buffer_bytes),
        ("rmem_max", config.socket_receive_buffer_bytes),
    ):
        most = machine.number(f"proc/sys/net/core/{name}")
        key = "socket.send.buffer.bytes" if name == "wmem_max" else "socket.receive.buffer.bytes"
        if most is not None and requested >= 0:
            advice = f"sysctl -w net.core.{name}={requested}, or {key}=-1 for the kernel's default size"
            yield _checked(most >= requested, "socket buffer", f"net.core.{name} is {most}, {key} {requested}", advice)
    pages = machine.text("sys/kernel/mm/transparent_hugepage/enabled") or ""
    if "[always]" in pages:
        advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: small objects use more memory with it"
        yield Finding(WARN, "huge pages", "transparent huge pages are used for all memory", advice)


def _check_congestion(config: BrokerConfig, machine: Machine) -> Iterator[Finding]:
    available = (machine.text("proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    current = machine.text("proc/sys/net/ipv4/tcp_congestion_control")
    for listener in config.endpoints:
        requested = listener.congestion_control
        if requested is not None:
            words = f"{listener.endpoint.name} requires {requested}; the kernel provides {', '.join(available)}"
            advice = f"modprobe tcp_{requested}, or set congestion.control to a provided algorithm"
            yield _checked(requested in available, "congestion", words, advice, FAIL)
    if current is not None and all(listener.congestion_control is None for listener in config.endpoints):
        yield Finding(OK, "congestion", f"TCP uses {current}")


def _checked(well: bool, check: str, words: str, advice: str, otherwise: str = WARN) -> Finding:
    return Finding(OK, check, words) if well else Finding(otherwise, check, words, advice)

"""What clients use, as Prometheus reads it: one series for each entity, and no two with the same labels."""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pybroker.metrics.client_use import of_clients
from pybroker.metrics.exposition import render

Rows = tuple[list[tuple[str, str, int, int]], int]


class Uses(NamedTuple):
    produce: Rows
    fetch: Rows
    request: Rows
    addresses: tuple[list[tuple[str, int]], int]


def read(uses: Uses | None, mutations: list[tuple[str, str, float, int, int]], omitted: int) -> dict[str, list[object]]:
    """Labels and value of each series, by name without `kafka_server_`."""
    text = "".join(render(of_clients(uses, (mutations, omitted))))
    found: dict[str, list[object]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            row = (*sample.labels.values(), sample.value)
            found.setdefault(sample.name.removeprefix("kafka_server_"), []).append(row)
    return found


def test_each_number_is_shown_in_the_unit_of_its_metric() -> None:
    uses = Uses(
        ([("alice", "", 15_000, 5_000)], 3),
        ([("", "c", 9, 0)], 0),
        ([("", "", 2_500_000_000, 70)], 0),
        ([("::1", 4)], 1),
    )
    omitted = {"Produce": 3, "Fetch": 0, "Request": 0, "ip": 1}
    assert read(uses, [("alice", "c", -2.5, 7, 1_500)], 2) == {
        "produce_bytes_total": [("alice", "", 15_000)],
        "produce_throttle_time_seconds_total": [("alice", "", 5)],
        "fetch_bytes_total": [("", "c", 9)],
        "fetch_throttle_time_seconds_total": [("", "c", 0)],
        "request_request_time_seconds_total": [("", "", 2.5)],
        "request_throttle_time_seconds_total": [("", "", 0.07)],
        "socket_server_metrics_ip_connection_accept_total": [("::1", 4)],
        "controllermutation_tokens": [("alice", "c", -2.5)],
        "controllermutation_partitions_total": [("alice", "c", 7)],
        "controllermutation_throttle_time_seconds_total": [("alice", "c", 1.5)],
        "pybroker_metrics_clients_omitted": [*{"ControllerMutation": 2, **omitted}.items()],
    }


def test_a_long_name_is_cut_and_told_apart_and_a_controller_alone_shows_what_it_decides() -> None:
    long = "x" * 30_000
    found = read(None, [("", f"{long}a", 1.0, 1, 0), ("", f"{long}b", 1.0, 2, 0), ("", 'q"\n', 1.0, 3, 0)], 0)
    assert "produce_bytes_total" not in found
    names = [row[1] for row in found["controllermutation_partitions_total"] if isinstance(row, tuple)]
    assert len(set(names)) == 3
    assert max(map(len, names)) < 160
    assert names[2] == 'q"\n'

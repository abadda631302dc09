from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from pybroker.admin_http.pages import Pages
from pybroker.admin_http.server import AdminServer, Limits
from pybroker.metrics.metric import Sample
from tests.support.conditions import wait_until

NOT_READY = "its logs are being opened"


class Subject:
    """What the pages of the tests' server say."""

    why: str | None = None


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject()


@pytest.fixture(scope="module")
def server(subject: Subject) -> Iterator[AdminServer]:
    def families() -> Iterator[tuple[str, list[Sample]]]:
        if subject.why == "broken":
            raise RuntimeError("no metrics")
        yield "process_open_fds", [Sample(12)]

    server = AdminServer("127.0.0.1", 0, Pages(families, lambda: subject.why), Limits(100, 20))
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _ready(subject: Subject) -> None:
    subject.why = None


def query(server: AdminServer, path: str, method: str = "GET") -> tuple[int, str]:
    with closing(http.client.HTTPConnection(*server.address, timeout=60)) as client:
        client.request(method, path)
        response = client.getresponse()
        return response.status, response.read().decode()


def raw(server: AdminServer, request: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    with socket.create_connection(server.address, timeout=60) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(4096), b""))


def test_an_address_may_be_whole(server: AdminServer) -> None:
    request = b"GET http://x/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert b"the process is alive" in raw(server, request)


def test_metrics_are_text_that_ends_with_its_mark(server: AdminServer) -> None:
    status, text = query(server, "/metrics?from=prometheus")
    assert (status, text.splitlines()[-2:]) == (200, ["process_open_fds 12", "# EOF"])


@pytest.mark.parametrize(
    ("accept", "content_type", "last"),
    [
        ("text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8", "process_open_fds 12"),
        ("*/*", "application/openmetrics-text; version=1.0.0; charset=utf-8", "# EOF"),
    ],
)
def test_metrics_have_the_format_that_is_accepted(
    server: AdminServer, accept: str, content_type: str, last: str
) -> None:
    with closing(http.client.HTTPConnection(*server.address, timeout=60)) as client:
        client.request("GET", "/metrics", headers={"Accept": accept})
        response = client.getresponse()
        assert response.getheader("content-type") == content_type
        assert response.read().decode().splitlines()[-1] == last


def test_a_node_is_alive_before_it_is_ready(server: AdminServer, subject: Subject) -> None:
    assert query(server, "/readyz") == (200, "ready\n")
    subject.why = NOT_READY
    assert query(server, "/readyz") == (503, f"not ready: {NOT_READY}\n")
    assert query(server, "/healthz")[0] == 200


def test_other_paths_and_methods_are_refused_by_name(server: AdminServer) -> None:
    assert query(server, "/nothing") == (404, "/nothing is not here; /metrics, /healthz and /readyz are\n")
    assert query(server, "/metrics", "POST") == (405, "POST is not served; GET and HEAD are\n")
    assert b"\r\nallow: GET, HEAD\r\n" in raw(server, b"TRACE / HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(("path", "status"), [("/metrics", 200), ("/nothing", 404)])
def test_head_is_answered_without_a_body(server: AdminServer, path: str, status: int) -> None:
    with closing(http.client.HTTPConnection(*server.address, timeout=60)) as client:
        client.request("HEAD", path)
        response = client.getresponse()
        assert (response.status, response.read()) == (status, b"")
        client.request("GET", "/healthz")
        assert client.getresponse().status == 200, "the connection goes on"


def test_few_heavy_pages_are_made_at_a_time_and_light_ones_go_on() -> None:
    begun: list[int] = []

    def families() -> Iterator[tuple[str, Iterator[Sample]]]:
        begun.append(1)
        # More than the system's buffers of a connection take, which nobody reads.
        yield "kafka_log_log_size_bytes", (Sample(0, ("t" * 200, str(index))) for index in range(200_000))

    server = AdminServer("127.0.0.1", 0, Pages(families, lambda: None), Limits(100, 60))
    clients = [socket.create_connection(server.address, timeout=60) for _ in range(3)]
    try:
        queries = b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n"
        for client in clients[:2]:
            client.sendall(queries)
        wait_until(lambda: len(begun) == 2, within=60, what="two pages are being made")
        clients[2].sendall(queries)
        assert query(server, "/healthz")[0] == 200
        assert len(begun) == 2
        clients[0].close()
        wait_until(lambda: len(begun) == 3, within=60, what="the third follows the first")
    finally:
        for client in clients:
            client.close()
        server.close()


def test_a_connection_takes_several_requests(server: AdminServer) -> None:
    with closing(http.client.HTTPConnection(*server.address, timeout=60)) as client:
        for _ in range(3):
            client.request("GET", "/healthz")
            assert client.getresponse().read() == b"the process is alive\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 20_000 + b"\r\n\r\n", b"431"),
        (b"\x16\x03\x01 a TLS handshake\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9000\r\n\r\n" + b"z" * 9000, b"413"),
    ],
    ids=["long headers", "no HTTP", "a long body"],
)
def test_what_is_too_much_or_no_http_is_refused(server: AdminServer, request_bytes: bytes, status: bytes) -> None:
    assert raw(server, request_bytes).startswith(b"HTTP/1.1 " + status)


def test_a_connection_too_many_is_closed_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    server = AdminServer("127.0.0.1", 0, Pages(lambda: iter(()), lambda: None), Limits(1, 20))
    try:
        with closing(http.client.HTTPConnection(*server.address, timeout=60)) as client:
            client.request("GET", "/healthz")
            assert client.getresponse().read()
            assert raw(server, b"") == raw(server, b"") == b""
            client.request("GET", "/healthz")
            assert client.getresponse().status == 200
    finally:
        server.close()
    assert caplog.messages == ["Closing a connection to the admin listener: it has the maximum of 1 connections"]


def test_an_answer_that_fails_is_cut_off_and_logged(
    server: AdminServer, subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    subject.why = "broken"
    with pytest.raises((http.client.IncompleteRead, http.client.RemoteDisconnected)):
        query(server, "/metrics")
    assert "The admin listener failed to respond" in caplog.text

"""TLS over asyncio against OpenSSL, Python's own `ssl`: whom the client believes, and what it says of others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pybroker.client import native
from pybroker.client.errors import AuthenticationError, SettingError
from pybroker.client.network.stream import Stream
from pybroker.client.security import open_security
from pybroker.client.settings import AdminSettings
from pybroker.testing.certificates import Authority, Certificate

pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def tls_of(**properties: Any) -> native.ClientTls:
    settings = AdminSettings.of_client("h:1", {"security.protocol": "SSL", **properties})
    open_security(settings)
    assert settings.tls is not None
    return settings.tls


@asynccontextmanager
async def echo(
    directory: Path, certificate: Certificate, queries: Authority | None = None, newest: ssl.TLSVersion | None = None
) -> AsyncIterator[int]:
    """A server that sends back what it gets, at a port of 127.0.0.1; `queries`: for clients' certificates."""
    store = directory / "server.pem"
    store.write_text(certificate.key + certificate.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store)
    if newest is not None:
        context.maximum_version = newest
    if queries is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=queries.pem)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(10_000):
                writer.write(piece)
        except (OSError, ssl.SSLError):
            pass
        finally:
            writer.close()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, __: None)  # handshakes that fail are what the tests are about
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def exchanged(port: int, tls: native.ClientTls, host: str = "127.0.0.1", size: int = 300_000) -> bool:
    stream = await Stream.open(host, port, tls)
    sent = bytes(range(256)) * (size // 256)
    try:
        stream.write(sent)
        return await stream.readexactly(len(sent)) == sent
    finally:
        stream.close()


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_bytes_come_back_as_they_were(authority: Authority, tmp_path: Path, newest: ssl.TLSVersion) -> None:
    async with echo(tmp_path, authority.issue("server"), newest=newest) as port:
        assert await exchanged(port, tls_of(**{"ssl.truststore.certificates": authority.pem}))


REFUSED = {
    "another authority": (lambda own: Authority("another").issue("server"), "nobody who is trusted|BadSignature"),
    "another host": (lambda own: own.issue("server", ["elsewhere.test"]), "not valid for name"),
    "ended": (lambda own: own.issue("server", days=-2), "expired"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_server_that_cannot_be_believed_is_refused(authority: Authority, tmp_path: Path, case: str) -> None:
    make, words = REFUSED[case]
    async with echo(tmp_path, make(authority)) as port:
        with pytest.raises(AuthenticationError, match=words):
            await exchanged(port, tls_of(**{"ssl.truststore.certificates": authority.pem}))


async def test_names_do_not_matter_where_no_algorithm_compares_them(authority: Authority, tmp_path: Path) -> None:
    trust = {"ssl.truststore.certificates": authority.pem, "ssl.endpoint.identification.algorithm": ""}
    async with echo(tmp_path, authority.issue("server", ["elsewhere.test"])) as port:
        assert await exchanged(port, tls_of(**trust))
    async with echo(tmp_path, Authority().issue("server")) as port:
        with pytest.raises(AuthenticationError, match=r"nobody who is trusted|BadSignature"):
            await exchanged(port, tls_of(**trust))


async def test_a_certificate_that_is_trusted_itself_may_be_an_authoritys(tmp_path: Path) -> None:
    own = Authority("127.0.0.1")
    trust = {"ssl.truststore.certificates": own.pem, "ssl.endpoint.identification.algorithm": ""}
    async with echo(tmp_path, own._own) as port:
        assert await exchanged(port, tls_of(**trust))
        with pytest.raises(AuthenticationError, match="certificate authority's own"):
            await exchanged(port, tls_of(**{**trust, "ssl.truststore.certificates": Authority().pem}))


@pytest.mark.parametrize("form", ["texts", "files", "pem store", "pkcs12", "sealed key"])
async def test_the_client_shows_its_certificate(authority: Authority, tmp_path: Path, form: str) -> None:
    client = authority.issue("alice")
    (tmp_path / "client.pem").write_text(client.key + client.certificate)
    (tmp_path / "client.p12").write_bytes(client.pkcs12("secret"))
    location = "ssl.keystore.location"
    shown: dict[str, Any] = {
        "texts": {"ssl.keystore.key": client.key, "ssl.keystore.certificate.chain": client.certificate},
        "files": {key: str(tmp_path / "client.pem") for key in ("ssl.key.location", "ssl.certificate.location")},
        "pem store": {location: str(tmp_path / "client.pem"), "ssl.keystore.type": "PEM"},
        "pkcs12": {location: str(tmp_path / "client.p12"), "ssl.keystore.password": "secret"},
        "sealed key": {
            "ssl.keystore.key": client.sealed_key("secret"),
            "ssl.keystore.certificate.chain": client.certificate,
            "ssl.key.password": "secret",
        },
    }[form]
    trust = {"ssl.truststore.certificates": authority.pem}
    async with echo(tmp_path, authority.issue("server"), queries=authority) as port:
        assert await exchanged(port, tls_of(**trust, **shown))


async def test_a_server_that_misses_the_clients_certificate_is_quoted(authority: Authority, tmp_path: Path) -> None:
    """The server is blocking: asyncio's own drops the alert of a handshake that fails."""
    server = authority.issue("server")
    (tmp_path / "server.pem").write_text(server.key + server.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with contextlib.suppress(OSError), accepted, context.wrap_socket(accepted, server_side=True):
                pass

        serving = asyncio.create_task(asyncio.to_thread(serve))
        stream = await Stream.open(
            "127.0.0.1", listener.getsockname()[1], tls_of(**{"ssl.truststore.certificates": authority.pem})
        )
        with pytest.raises(AuthenticationError, match="refused this client's certificate, or that it shows none"):
            await stream.readexactly(1)
        stream.close()
        await serving


async def test_a_server_without_tls_is_named(authority: Authority) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    with pytest.raises(AuthenticationError, match="speaks no TLS"):
        await exchanged(server.sockets[0].getsockname()[1], tls_of(**{"ssl.truststore.certificates": authority.pem}))
    server.close()


WRONG = [
    ({"ssl.truststore.location": "/nowhere"}, "ssl.truststore.location=/nowhere: No such file"),
    ({"ssl.truststore.certificates": "text"}, "BEGIN CERTIFICATE"),
    ({"ssl.keystore.key": "text"}, "without its certificate"),
    ({"ssl.enabled.protocols": "TLSv1.1"}, "must be one of TLSv1.2, TLSv1.3"),
    ({"ssl.cipher.suites": "TLS_NULL"}, "TLS_NULL: must be among TLS_AES"),
    ({"ssl.truststore.certificates": "a", "ssl.ca.pem": "b"}, "have the same meaning"),
]


@pytest.mark.parametrize(("properties", "words"), WRONG, ids=lambda it: str(it)[:40])
def test_what_cannot_be_used_is_refused_by_name(properties: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        tls_of(**properties)


def test_javas_own_stores_are_refused_with_the_way_out(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    with pytest.raises(SettingError, match="keytool -importkeystore"):
        tls_of(**{"ssl.truststore.location": str(store)})


def test_a_wrong_password_shows_neither_it_nor_the_key(authority: Authority, tmp_path: Path) -> None:
    client = authority.issue("alice")
    (tmp_path / "client.p12").write_bytes(client.pkcs12("secret"))
    for properties in (
        {"ssl.keystore.location": str(tmp_path / "client.p12"), "ssl.keystore.password": "wr0ng"},
        {
            "ssl.keystore.key": client.sealed_key("secret"),
            "ssl.keystore.certificate.chain": client.certificate,
            "ssl.key.password": "wr0ng",
        },
    ):
        with pytest.raises(SettingError, match="password") as error:
            tls_of(**properties)
        assert "wr0ng" not in str(error.value)
        assert "BEGIN" not in str(error.value)

"""Keys of the OpenTelemetry export: the HTTP endpoint for a node's metrics and for spans of its control requests.

Kafka has none of these. Nothing is exported without an endpoint, and an endpoint is rejected where the packages for
the export are not installed. Must not know the exported data.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pybroker.config.errors import ConfigError
from pybroker.config.extras import install_command
from pybroker.config.key import double, integer, optional_string, parse_list, password
from pybroker.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

ENDPOINT, HEADERS = "opentelemetry.endpoint", "opentelemetry.headers"
_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class OpenTelemetryKeys(Settings):
    """The endpoint of metrics and traces, the export interval, and the share of traced requests."""

    opentelemetry_endpoint = optional_string(
        "URL to which metrics and traces are sent by OTLP over HTTP, as http://host:port or https://host:port, such as "
        "http://127.0.0.1:4318; /v1/metrics and /v1/traces are appended. Without this key, nothing is sent. The export "
        "needs pybroker[otel].",
        ours="set it where a collector receives metrics and traces",
    )
    opentelemetry_headers = password(
        "HTTP headers of all OpenTelemetry exports, such as a token for the receiver: name=value, comma-separated.",
        acts=True,
        dynamic=False,
        ours="set it where the receiver requires a token",
    )
    opentelemetry_interval_ms = integer(
        60_000,
        "Time in ms between two exports of all metrics by OpenTelemetry.",
        at_least=1,
        ours="shorten it during an investigation; lengthen it where each export costs money",
    )
    opentelemetry_timeout_ms = integer(
        10_000,
        "Maximum time in ms of an export to an OpenTelemetry receiver, including retries. Data that is not exported "
        "within this time is lost.",
        at_least=1,
        ours="raise it for a receiver behind a slow link",
    )
    opentelemetry_traces_ratio = double(
        0.0,
        "Fraction of control requests (all but Produce and Fetch) for which a span is exported by OpenTelemetry, from "
        "0 for none to 1 for all. The requests are selected at random.",
        at_most=1.0,
        ours="1.0 in development, a small fraction in production",
    )


class ExportSettings(NamedTuple):
    """The settings of the export."""

    endpoint: str
    """A URL without a slash at its end."""
    headers: Mapping[str, str]
    interval_s: float
    timeout_s: float
    traces_ratio: float

    def __repr__(self) -> str:
        return f"ExportSettings({self.endpoint})"  # Headers may contain secrets.


def build_export(keys: OpenTelemetryKeys) -> ExportSettings | None:
    """Return the export settings, None without an export. Raises ConfigError."""
    endpoint = keys.opentelemetry_endpoint
    if endpoint is None:
        return None
    try:
        parts = urlsplit(endpoint)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment:
        raise ConfigError(ENDPOINT, endpoint, "an address, such as http://127.0.0.1:4318")
    if not all(map(_is_installed, _PACKAGES)):
        words = f"the packages that send: {install_command('otel')}"
        raise ConfigError(ENDPOINT, endpoint, words)
    return ExportSettings(
        endpoint.rstrip("/"),
        _headers(keys.opentelemetry_headers),
        keys.opentelemetry_interval_ms / 1000,
        keys.opentelemetry_timeout_ms / 1000,
        keys.opentelemetry_traces_ratio,
    )


def _headers(text: str | None) -> dict[str, str]:
    found = {}
    for item in parse_list(text or ""):
        name, equals, value = item.partition("=")
        if not name.strip() or not equals:
            raise ConfigError(HEADERS, "[hidden]", "name=value, comma-separated")
        found[name.strip()] = value.strip()
    return found


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False

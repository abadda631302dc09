"""The settings that every client has, and those of an admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pybroker.client.errors import SettingError
from pybroker.client.settings.keys import fixed, no_classes
from pybroker.client.settings.security import SecuritySettings
from pybroker.config.key import integer, long, string

_CONTROLLERS = "bootstrap.controllers"
_ANY_TRUTH = ("true", "false")


class ConnectionSettings(SecuritySettings):
    """Settings for finding a cluster, connecting to it, and request timeouts."""

    client_id = string("pybroker", "The client's name in requests, and in the broker's logs and quotas.")
    request_timeout_ms = integer(30_000, "The maximum time to wait for the response to a request.", at_least=0)
    default_api_timeout_ms = integer(60_000, "The maximum time of a call, which may send several requests.", at_least=0)
    socket_connection_setup_timeout_ms = long(
        10_000,
        "The maximum time to establish a connection. In producers and fetchers it doubles with each failure.",
        at_least=0,
    )
    socket_connection_setup_timeout_max_ms = long(
        30_000, "The upper limit of the doubled `socket.connection.setup.timeout.ms`.", at_least=0
    )
    metadata_max_age_ms = long(300_000, "The age at which metadata is requested again.", at_least=0)
    reconnect_backoff_ms = long(
        50, "The wait before reconnecting to a broker; it doubles with each failure.", at_least=0
    )
    reconnect_backoff_max_ms = long(1_000, "The maximum wait before reconnecting to a broker.", at_least=0)
    retry_backoff_ms = long(100, "The wait before retrying a request; it doubles with each failure.", at_least=0)
    retry_backoff_max_ms = long(1_000, "The maximum wait before retrying a request.", at_least=0)
    send_buffer_bytes = integer(131_072, "The SO_SNDBUF size of connections; -1 is the system's default.", at_least=-1)
    receive_buffer_bytes = integer(
        65_536, "The SO_RCVBUF size of connections; -1 is the system's default.", at_least=-1
    )

    security_providers = fixed(None, "Java security providers.", because="pybroker does not run on a JVM")
    client_dns_lookup = fixed(
        "use_all_dns_ips",
        "How host names are resolved: the client tries all addresses of a name in turn.",
        only=("use_all_dns_ips",),
        because="canonical host names are not supported",
    )
    config_providers = no_classes("Java classes that replace variables in values.", "values are used literally")
    metric_reporters = no_classes(
        "Java classes that receive metrics.",
        "`metrics()` of a producer and a consumer returns the metrics",
        only=("", "org.apache.kafka.common.metrics.JmxReporter"),
    )
    enable_metrics_push = fixed(
        "true",
        "Whether metrics are pushed to a broker that subscribes to them. This client pushes none.",
        only=_ANY_TRUTH,
        because="metrics are not pushed to brokers",
    )
    metadata_recovery_strategy = string(
        "rebootstrap",
        "The action when no known broker responds, or a broker returns REBOOTSTRAP_REQUIRED (KIP-899, KIP-1102). "
        "`rebootstrap` returns to `bootstrap.servers`, `none` retries the known brokers.",
        one_of=("rebootstrap", "none"),
        any_case=True,
    )
    metadata_recovery_rebootstrap_trigger_ms = long(
        300_000,
        "With `rebootstrap`: the time without metadata after which the client closes all connections and returns to "
        "`bootstrap.servers`.",
        at_least=0,
    )
    connections_max_idle_ms = long(
        540_000, "The client keeps idle connections open, and reopens those that a broker closes.", acts=False
    )
    metrics_num_samples = integer(
        2, "The number of older samples that are kept. Rates are computed since the oldest.", at_least=1
    )
    metrics_sample_window_ms = long(30_000, "The time between two samples of the counters.", at_least=0)
    metrics_recording_level = fixed(
        "INFO",
        "The recording level of metrics. All metrics are always recorded.",
        only=("INFO", "DEBUG", "TRACE"),
        because="no other levels exist",
    )


class AdminSettings(ConnectionSettings):
    """An admin's settings; Kafka 4's defaults."""

    client = "an admin"

    bootstrap_controllers = string(
        "", "Controllers as `host:port`, comma-separated or as a list, to use instead of brokers (KIP-919)."
    )
    retries = integer(2**31 - 1, "Calls are retried until `default.api.timeout.ms` expires.", at_least=0, acts=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Parse as every client; bootstrap.controllers may replace the servers. Raises SettingError."""
        controllers = properties.get(_CONTROLLERS)
        if controllers:
            if properties.get("bootstrap.servers"):
                raise SettingError(f"{_CONTROLLERS}={controllers}: bootstrap.servers is also set; set only one of them")
            properties = {**properties, "bootstrap.servers": controllers}
        return super().from_properties(properties)

    def _complete(self) -> None:
        longest, one = self.default_api_timeout_ms, self.request_timeout_ms
        if longest < one:
            if "default.api.timeout.ms" in self.given:
                raise SettingError(
                    f"default.api.timeout.ms={longest}: must be at least request.timeout.ms, which is {one}"
                )
            self.__dict__["default_api_timeout_ms"] = one

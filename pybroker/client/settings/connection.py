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

    client_id = string("pybroker", "The name of this client in requests, and in the broker's logs and quotas.")
    request_timeout_ms = integer(30_000, "The longest wait for the answer to a request.", at_least=0)
    default_api_timeout_ms = integer(60_000, "The longest that a call takes which may ask several times.", at_least=0)
    socket_connection_setup_timeout_ms = long(
        10_000, "The longest wait for a connection; where records travel, it doubles each time.", at_least=0
    )
    socket_connection_setup_timeout_max_ms = long(30_000, "The longest that this wait becomes.", at_least=0)
    metadata_max_age_ms = long(300_000, "Metadata older than this is asked for again.", at_least=0)
    reconnect_backoff_ms = long(50, "The rest after a connection that failed; it doubles each time.", at_least=0)
    reconnect_backoff_max_ms = long(1_000, "The longest rest between connections to a broker.", at_least=0)
    retry_backoff_ms = long(100, "The rest before a request is sent again; it doubles each time.", at_least=0)
    retry_backoff_max_ms = long(1_000, "The longest that this rest becomes.", at_least=0)
    send_buffer_bytes = integer(131_072, "SO_SNDBUF of connections; -1 leaves the system's.", at_least=-1)
    receive_buffer_bytes = integer(65_536, "SO_RCVBUF of connections; -1 leaves the system's.", at_least=-1)

    security_providers = fixed(None, "Java's security providers.", because="there is no JVM here")
    client_dns_lookup = fixed(
        "use_all_dns_ips",
        "How names become addresses: all addresses of a name are tried in turn.",
        only=("use_all_dns_ips",),
        because="names are not replaced by canonical ones",
    )
    config_providers = no_classes("Java classes that replace parts of values.", "values are taken as they are given")
    metric_reporters = no_classes(
        "Java classes that get metrics.",
        "`metrics()` of a producer and a consumer returns the figures",
        only=("", "org.apache.kafka.common.metrics.JmxReporter"),
    )
    enable_metrics_push = fixed(
        "true", "Whether a broker that asks for metrics gets them; this client is not asked.", only=_ANY_TRUTH,
        because="metrics are not pushed to brokers",
    )  # fmt: skip
    metadata_recovery_strategy = string(
        "rebootstrap",
        "What happens when no known broker answers, or one says so (KIP-899, KIP-1102): the client goes back to "
        "`bootstrap.servers`, or, with `none`, tries those that it knows.",
        one_of=("rebootstrap", "none"),
        any_case=True,
    )
    metadata_recovery_rebootstrap_trigger_ms = long(
        300_000,
        "With `rebootstrap`: after so long without metadata every connection is closed, and the client goes back to "
        "`bootstrap.servers`.",
        at_least=0,
    )
    connections_max_idle_ms = long(
        540_000, "The client leaves idle connections open; what a broker closes is opened again.", acts=False
    )
    metrics_num_samples = integer(2, "Older readings that are kept; a rate is that since the oldest.", at_least=1)
    metrics_sample_window_ms = long(30_000, "The time between readings of the totals.", at_least=0)
    metrics_recording_level = fixed(
        "INFO", "Which metrics are kept: always all.", only=("INFO", "DEBUG", "TRACE"), because="there are no others"
    )


class AdminSettings(ConnectionSettings):
    """An admin's settings; Kafka 4's defaults."""

    client = "an admin"

    bootstrap_controllers = string(
        "", "`host:port` of controllers to ask in place of brokers, comma-separated or a list (KIP-919)."
    )
    retries = integer(2**31 - 1, "Calls are repeated until `default.api.timeout.ms` is over.", at_least=0, acts=False)

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

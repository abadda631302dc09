"""A client for the receivers of telemetry, with the attributes that subscriptions match."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Client(NamedTuple):
    """One client instance, as its first request to this broker described it."""

    instance_id: bytes
    """16 bytes, unique for each instance of a program."""
    client_id: str
    software_name: str
    """Software name (KIP-511); empty where the client does not send it."""
    software_version: str
    address: str
    port: int
    principal: str
    """`User:alice`; `User:ANONYMOUS` without authentication."""

    @property
    def uuid(self) -> str:
        """Return the instance id in the notation of Kafka's tools."""
        return base64.urlsafe_b64encode(self.instance_id).decode().rstrip("=")

    @property
    def attributes(self) -> Mapping[str, str]:
        """Return the attributes that subscriptions match (`pybroker.config.client_metrics.ATTRIBUTES`).

        Unknown attributes are omitted; they match no pattern.
        """
        known = {
            "client_instance_id": self.uuid,
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": str(self.port),
        }
        return {name: text for name, text in known.items() if text}


class Push(NamedTuple):
    """A push of a client."""

    client: Client
    payload: bytes
    """OpenTelemetry's MetricsData v1 in Protobuf, decompressed; at most `telemetry.max.bytes`."""
    interval_ms: int
    """The push interval of the client."""
    is_last: bool
    """Whether the client terminates."""

"""A client as a receiver of telemetry sees it, and what subscriptions are matched with."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Client(NamedTuple):
    """One instance of a client, as its first request to this broker showed it."""

    instance_id: bytes
    """16 bytes; other instances of the program have others."""
    client_id: str
    software_name: str
    """What it says that it is (KIP-511); empty where it does not say."""
    software_version: str
    address: str
    port: int
    principal: str
    """`User:alice`; `User:ANONYMOUS` for nobody in particular."""

    @property
    def uuid(self) -> str:
        """The instance's id as Kafka's tools write it."""
        return base64.urlsafe_b64encode(self.instance_id).decode().rstrip("=")

    @property
    def attributes(self) -> Mapping[str, str]:
        """What patterns of subscriptions are held against (`pybroker.config.client_metrics.ATTRIBUTES`).

        What is not known is left out: it matches no pattern.
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
    """What a client has pushed."""

    client: Client
    payload: bytes
    """OpenTelemetry's MetricsData v1 in Protobuf, decompressed; at most `telemetry.max.bytes`."""
    interval_ms: int
    """How often the client is to push."""
    is_last: bool
    """Whether the client ends."""

"""What a broker's settings name classes for: its authorizer, and the receivers of clients' metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.shut_down import Stage
from pybroker.serving import build_authorizer, build_telemetry

if TYPE_CHECKING:
    from pybroker.node.foundation import Foundation
    from pybroker.security.authorizer import Judge
    from pybroker.telemetry.service import Telemetry


class Plugins(msgspec.Struct, frozen=True, eq=False):
    """One run of a broker's."""

    authorizer: Judge | None
    """None where clients may do everything."""
    telemetry: Telemetry | None
    """None where nothing would receive what clients push."""


def load_plugins(foundation: Foundation) -> Plugins:
    """Load the classes; raises ConfigError for one that cannot be loaded."""
    authorizer = build_authorizer(foundation.config)
    telemetry = build_telemetry(foundation.config, foundation.clock.steady_ms)
    if telemetry is not None:
        foundation.shut_down.add(Stage.WORKERS, "receivers of clients' metrics", telemetry.close)
    return Plugins(authorizer, telemetry)

"""The plug-in classes that a broker's settings name: its authorizer, and the receivers of client telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.shut_down import Stage
from pybroker.serving import build_authorizer, build_telemetry

if TYPE_CHECKING:
    from pybroker.node.foundation import Foundation
    from pybroker.security.authorizer import AuthorizationRules
    from pybroker.telemetry.service import Telemetry


class Plugins(msgspec.Struct, frozen=True, eq=False):
    """The plug-ins of one run of a broker."""

    authorizer: AuthorizationRules | None
    """None where every operation is allowed."""
    telemetry: Telemetry | None
    """None without receivers."""


def load_plugins(foundation: Foundation) -> Plugins:
    """Load the classes. Raises ConfigError for a class that cannot be loaded."""
    authorizer = build_authorizer(foundation.config)
    telemetry = build_telemetry(foundation.config, foundation.clock.steady_ms)
    if telemetry is not None:
        foundation.shut_down.add(Stage.WORKERS, "receivers of clients' metrics", telemetry.close)
    return Plugins(authorizer, telemetry)

"""The export of a node's metrics and traces by OpenTelemetry, built if `opentelemetry.endpoint` is set.

Owns when the export starts and stops. Without an endpoint, its modules and OpenTelemetry's packages are not imported.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.net.traced_apis import traced

if TYPE_CHECKING:
    from pybroker.node.foundation import Foundation

log = logging.getLogger("pybroker.admin")


def begin_export(foundation: Foundation) -> None:
    """Start the export; it stops with the node. Does nothing without `opentelemetry.endpoint`."""
    config = foundation.config
    settings = config.export
    if settings is None:
        return
    from pybroker.metrics.opentelemetry import Export, Sender

    sender = Sender(settings, cluster_id=foundation.cluster_id, node_id=config.node_id)
    export = Export(sender, foundation.metrics.families, settings.interval_s)
    foundation.shut_down.add(Stage.DIRECTORIES, export, lambda: asyncio.to_thread(export.close))
    ratio = settings.traces_ratio
    if ratio > 0:
        foundation.traced = partial(traced, spans=export, ratio=ratio)
    traces = f"traces of {ratio:g} of the control requests" if ratio > 0 else "no traces"
    log.info("Exporting metrics to %s every %g s, and %s", settings.endpoint, settings.interval_s, traces)

"""How a part of a broker comes to its end: what goes wrong is logged, and keeps no other part from ending.

Must not know the parts, nor their order.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

log = logging.getLogger("pybroker.broker")


async def ended(ending: Awaitable[object], part: object) -> bool:
    """Wait until a part has ended; a failure is logged and does not keep others from ending. Whether there was none."""
    name = part if isinstance(part, str) else type(part).__name__
    try:
        await ending
    except OSError as error:
        log.error("%s did not end cleanly: %s", name, error)
    except Exception:
        log.exception("%s did not end cleanly", name)
    else:
        return True
    return False

"""The smallest plan that still ends badly, found by leaving faults out: halves first, then ever smaller parts.

Owns the search (Zeller's delta debugging). Must not know what a fault does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.whole_world import Plan


def shrink(plan: Plan, breaks: Callable[[Plan], bool], *, most_runs: int = 80) -> Plan:
    """Return a plan with fewer faults for which `breaks` is true as well, after so many runs at most."""
    runs, parts = 0, 2
    while runs < most_runs and plan.faults:
        size = max(1, -(-len(plan.faults) // parts))
        for begin in range(0, len(plan.faults), size):
            fewer = plan._replace(faults=plan.faults[:begin] + plan.faults[begin + size :])
            runs += 1
            if breaks(fewer):
                plan, parts = fewer, max(2, parts - 1)
                break
            if runs >= most_runs:
                break
        else:
            if size == 1:
                break
            parts = min(len(plan.faults), 2 * parts)
    return plan

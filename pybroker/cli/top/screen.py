"""The live view of `pybroker top` on a terminal, by rich.

Owns the layout. Must not compute what it shows.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.cli.top.rates import CLIENT_HEAD, GROUP_HEAD, PARTITION_HEAD, TOPIC_HEAD, View, build_view, summary
from pybroker.config.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, Group
    from rich.table import Table

    from pybroker.cli.top.sampling import Sample

_NUMBERS = {
    "PARTITIONS",
    "PARTITION",
    "LEADER",
    "RECORDS/S",
    "RECORDS",
    "END-OFFSET",
    "LAG",
    "BEHIND",
    *CLIENT_HEAD[2:],
}


def show_live(
    sample: Callable[[], Sample], *, interval_s: float, rows: int, title: str, console: Console | None = None
) -> None:
    """Show the cluster until KeyboardInterrupt; raises CommandError without rich, and off a terminal."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        raise CommandError(f"the live view needs rich: {install_command('cli')}; or use --once") from None
    console = console or Console()
    if not console.is_terminal:
        raise CommandError("the live view needs a terminal: use --once or --json", 2)
    pause = threading.Event()
    before = sample()
    with Live(f"{title}: measuring for {interval_s:g} s", console=console, screen=True, auto_refresh=False) as live:
        while not pause.wait(interval_s):
            now = sample()
            live.update(render(build_view(before, now), rows=rows, title=title), refresh=True)
            before = now


def render(view: View, *, rows: int, title: str) -> Group:
    """Return the display of a view."""
    from rich.console import Group
    from rich.text import Text

    is_well = not view.without_leader and not view.under_replicated
    head = Text(f"{title}: {summary(view)}", style="bold" if is_well else "bold red")
    tables = (
        _table(TOPIC_HEAD, [row.cells() for row in view.topics[:rows]]),
        _table(PARTITION_HEAD, [row.cells() for row in view.partitions[:rows]]),
        _table(GROUP_HEAD, [row.cells() for row in view.groups[:rows]]),
        _table(CLIENT_HEAD, [row.cells() for row in view.clients[:rows]]),
    )
    return Group(head, *(table for table in tables if table.row_count))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table

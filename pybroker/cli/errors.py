"""What a command says when it cannot do its work."""

from __future__ import annotations


class CommandError(Exception):
    """The message is the one line that the user sees; `status` is the exit status of the process."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status

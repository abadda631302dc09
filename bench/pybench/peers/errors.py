"""Errors of peers.

PeerError
├── MissingToolError   a program is not installed; the message names the package to install
├── ArtefactError      the peer's files could not be fetched or built
└── StartError         the peer ended or did not respond before it was ready; the message ends with its log's tail
"""

from __future__ import annotations


class PeerError(Exception):
    """A peer cannot be used. The message names the peer and the reason."""


class MissingToolError(PeerError):
    """A program that the peer needs is not on the search path."""

    def __init__(self, program: str, install: str) -> None:
        super().__init__(f"{program} is not on the search path: install {install}")
        self.program = program


class ArtefactError(PeerError):
    """Fetching or building a peer's files failed."""


class StartError(PeerError):
    """The peer's process did not become ready."""

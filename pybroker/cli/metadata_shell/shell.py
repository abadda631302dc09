"""The commands of the shell over a tree: ls, cat, cd, pwd, find, tree.

Owns paths with wildcards, and the output, which is that of kafka-metadata-shell. A directory with a child named "" has
a text of its own, which `cat` prints: nodes of ZooKeeper's tree have children and a text. Must not know metadata.
"""

from __future__ import annotations

import fnmatch
import posixpath
import shlex
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pybroker.cli.metadata_shell.image_tree import Tree

OWN_TEXT = ""
HELP = (
    "cat PATH...   show a file\n"
    "cd [PATH]     go to a directory\n"
    "exit          end the shell\n"
    "find [PATH]   list all that is below\n"
    "help          show this\n"
    "ls [PATH...]  list directories\n"
    "pwd           show where the shell is\n"
    "tree PATH...  show all that is below, with texts"
)


class Shell:
    """A tree and its working directory."""

    def __init__(self, root: Tree, show: Callable[[str], None] = print) -> None:
        self._root = root
        self._show = show
        self.directory = "/"
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "cat": self._cat,
            "cd": self._cd,
            "find": self._find,
            "help": lambda _: show(HELP),
            "ls": self._ls,
            "pwd": lambda _: show(self.directory),
            "tree": self._tree,
        }

    def run_line(self, line: str) -> None:
        """Run a line of input. Raises CommandError."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise CommandError(f"{line}: {error}") from None
        if words:
            self.run(words)

    def run(self, words: list[str]) -> None:
        """Run a command. Raises CommandError for an unknown one."""
        command = self._commands.get(words[0])
        if command is None:
            raise CommandError(f"{words[0]}: no such command; there are {', '.join(self._commands)}, exit")
        command(words[1:])

    def _found(self, command: str, target: str) -> Iterator[tuple[str, Tree | str]]:
        """Find the nodes that a path matches, each with its full path; reports a path without a match."""
        absolute = posixpath.normpath(posixpath.join(self.directory, target))
        found: list[tuple[str, Tree | str]] = [("/", self._root)]
        for part in filter(None, absolute.split("/")):
            found = [
                (posixpath.join(path, name), node[name])
                for path, node in found
                if isinstance(node, dict)
                for name in sorted(node)
                if name != OWN_TEXT and (name == part or fnmatch.fnmatchcase(name, part))
            ]
        if not found:
            self._show(f"{command}: {target}: no such file or directory.")
        yield from found

    def _ls(self, targets: list[str]) -> None:
        found = [one for target in targets or ["."] for one in self._found("ls", target)]
        directories = [(path, node) for path, node in found if isinstance(node, dict)]
        files = [path for path, node in found if isinstance(node, str)]
        for path in files:
            self._show(posixpath.basename(path))
        is_headed = bool(files) or len(directories) > 1
        for number, (path, node) in enumerate(directories):
            if is_headed:
                self._show(f"{chr(10) if number or files else ''}{posixpath.basename(path)}:")
            for name in sorted(node):
                if name != OWN_TEXT:
                    self._show(name)

    def _cat(self, targets: list[str]) -> None:
        if not targets:
            raise CommandError("cat: expected the path of a file")
        for target in targets:
            for _, node in self._found("cat", target):
                text = node.get(OWN_TEXT) if isinstance(node, dict) else node
                self._show(text if isinstance(text, str) else f"cat: {target}: Is a directory.")

    def _cd(self, targets: list[str]) -> None:
        target = targets[0] if targets else "/"
        found = list(self._found("cd", target))
        if len(found) > 1:
            self._show(f"cd: {target}: {len(found)} directories have such a name, expected one")
        elif found:
            path, node = found[0]
            if isinstance(node, dict):
                self.directory = path
            else:
                self._show(f"cd: {target}: not a directory.")

    def _find(self, targets: list[str]) -> None:
        for target in targets or ["."]:
            for path, node in self._found("find", target):
                for below in _all_paths(path, node):
                    self._show(below)

    def _tree(self, targets: list[str]) -> None:
        if not targets:
            raise CommandError("tree: expected the path of a directory or file")
        for target in targets:
            for _, node in self._found("tree", target):
                for line in _tree_lines(node, ""):
                    self._show(line)


def _all_paths(path: str, node: Tree | str) -> Iterator[str]:
    yield path
    if isinstance(node, dict):
        for name in sorted(node):
            if name != OWN_TEXT:
                yield from _all_paths(posixpath.join(path, name), node[name])


def _tree_lines(node: Tree | str, indent: str) -> Iterator[str]:
    if isinstance(node, str):
        yield f"{indent}{node}"
        return
    for name in sorted(node):
        child = node[name]
        if name == OWN_TEXT:
            yield f"{indent}{child}"
        else:
            yield f"{indent}{name}:"
            yield from _tree_lines(child, f"{indent}  ")

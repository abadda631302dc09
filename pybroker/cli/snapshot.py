"""`pybroker snapshot`: saves the metadata of one node to a file, and restores it.

Owns the file (a tar archive with a manifest of sizes and checksums), the list of a node's files in it, and the
conditions of a restore. The file contains the state from which a node starts after a crash: the metadata log, its
snapshots, its vote, and the node's identity. Records of topics are not included.

A running node can be saved. Files are copied in such an order that a later file is never older than the previous ones.
A batch that is being written is truncated by the next start, as after a crash. If the node deletes segments of its log
during the copy, the copy starts again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.log_check import check_metadata_log
from pybroker.controller.quorum.log.lost_records import ACCEPT_LOSS
from pybroker.storage.errors import StorageError
from pybroker.storage.log_dirs.atomic_file import sync_directory
from pybroker.storage.log_dirs.log_directory import CLEAN_SHUTDOWN_NAME, LogDirectory
from pybroker.storage.log_dirs.meta_properties import FILE_NAME, MetaProperties, read_meta_properties

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    "Save the metadata of one node, running or stopped, to a file, and restore the file to the directory of a stopped "
    "node. The file does not contain records of topics."
)
_SAVED = {
    "file": "string",
    "clusterId": "string",
    "nodeId": "integer",
    "savedMs": "integer",
    "files": "integer",
    "bytes": "integer",
}
JSON = {"save": _SAVED, "restore": _SAVED}

_MANIFEST = "manifest.json"
_VERSION = 1
_BOOTSTRAP = "bootstrap.checkpoint"
# The vote is copied last, so its epoch is never lower than the epoch of the copied log.
_OF_LOG = (re.compile(r"\d{20}\.log"), re.compile(r"\d{20}-\d{10}\.checkpoint"), re.compile(r"leader-epoch-checkpoint"))
_LAST = "quorum-state"
_MEMBER = re.compile(
    rf"{re.escape(FILE_NAME)}|{re.escape(_BOOTSTRAP)}|{re.escape(DIRECTORY_NAME)}/"
    r"(?:\d{20}\.log|\d{20}-\d{10}\.checkpoint|leader-epoch-checkpoint|quorum-state)"
)
_TRIES = 5
_MOST_MANIFEST_BYTES = 64 * 1024**2


class _Saved(NamedTuple):
    """The content of the manifest."""

    cluster_id: str
    node_id: int
    saved_ms: int
    files: dict[str, dict[str, Any]]

    def as_json(self, file: Path) -> dict[str, object]:
        return {
            "file": str(file),
            "clusterId": self.cluster_id,
            "nodeId": self.node_id,
            "savedMs": self.saved_ms,
            "files": len(self.files),
            "bytes": sum(one["size"] for one in self.files.values()),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    save = subcommands.add_parser("save", help="save the metadata of a node, running or not", allow_abbrev=False)
    save.set_defaults(execute=_save)
    restore = subcommands.add_parser("restore", help="restore the metadata of a stopped node", allow_abbrev=False)
    restore.add_argument("--replace", action="store_true", help="rename and keep a metadata log that exists")
    restore.add_argument(
        "--every-voter-is-lost",
        action="store_true",
        help="confirm, for one of several voters, that no other voter has newer metadata",
    )
    restore.set_defaults(execute=_restore)
    for one in (save, restore):
        one.add_argument("-c", "--config", type=Path, metavar="FILE", help="the server.properties of the node")
        one.add_argument(
            "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that overrides the file"
        )
        one.add_argument("file", type=Path, metavar="ARCHIVE", help="the file, such as metadata.tar")
        add_json_option(one)


def run(arguments: argparse.Namespace) -> int:
    """Save or restore, and return 0."""
    try:
        config = BrokerConfig.from_properties(arguments.config, arguments.override)
        saved: _Saved = arguments.execute(config, arguments)
    except (ConfigError, StorageError, MetadataLogError) as error:
        raise CommandError(str(error)) from None
    except (OSError, tarfile.TarError) as error:
        where = getattr(error, "filename", None) or arguments.file
        raise CommandError(f"{where}: {getattr(error, 'strerror', None) or error}") from None
    document = saved.as_json(arguments.file)
    if arguments.json:
        print_json(document)
    else:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(saved.saved_ms / 1000))
        print(
            f"{arguments.subcommand}d node {saved.node_id} of cluster {saved.cluster_id}, as it was at {at}: "
            f"{document['files']} files, {document['bytes']} bytes"
        )
    return 0


def _save(config: BrokerConfig, arguments: argparse.Namespace) -> _Saved:
    parent = config.metadata_directory
    meta = read_meta_properties(parent) if parent.is_dir() else None
    if meta is None or meta.cluster_id is None or not (parent / DIRECTORY_NAME).is_dir():
        raise CommandError(f"{parent}: this directory contains no metadata of a node")
    with tempfile.TemporaryDirectory(dir=arguments.file.absolute().parent, prefix=".metadata-") as name:
        copy = Path(name)
        _copy_files(parent, copy)
        check_metadata_log(copy, clean_shutdown=False, partitions=[])
        files = {str(path.relative_to(copy)): _facts(path) for path in sorted(copy.rglob("*")) if path.is_file()}
        saved = _Saved(meta.cluster_id, config.node_id, time.time_ns() // 1_000_000, files)
        part = copy / "archive"
        with tarfile.open(part, "x") as archive:
            text = json.dumps({"version": _VERSION, **saved._asdict()}, indent=1).encode()
            head = tarfile.TarInfo(_MANIFEST)
            head.size = len(text)
            archive.addfile(head, io.BytesIO(text))
            for member in files:
                archive.add(copy / member, member)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.chmod(0o600)  # Metadata contains password verifiers.
        part.replace(arguments.file)
    sync_directory(arguments.file.absolute().parent)
    return saved


def _copy_files(parent: Path, copy: Path) -> None:
    """Copy the files of a node that may be running. Raises CommandError if it deletes log segments at each attempt."""
    for _ in range(_TRIES):
        shutil.rmtree(copy / DIRECTORY_NAME, ignore_errors=True)
        (copy / DIRECTORY_NAME).mkdir()
        before = _names(parent)
        try:
            for name in (FILE_NAME, _BOOTSTRAP):
                if (parent / name).exists():
                    shutil.copyfile(parent / name, copy / name)
            for name in (*before, _LAST):
                if name != _LAST or (parent / DIRECTORY_NAME / name).exists():
                    shutil.copyfile(parent / DIRECTORY_NAME / name, copy / DIRECTORY_NAME / name)
        except FileNotFoundError:
            continue
        # A new segment follows complete ones. A deleted segment was replaced by a snapshot, which the copy lacks.
        if set(before) <= set(_names(parent)):
            return
    raise CommandError(f"{parent / DIRECTORY_NAME}: its files changed during each of {_TRIES} copies; try again")


def _names(parent: Path) -> list[str]:
    """Return the files of the metadata log to save, in the order of the copy."""
    names = sorted(os.listdir(parent / DIRECTORY_NAME))
    return [name for pattern in _OF_LOG for name in names if pattern.fullmatch(name)]


def _facts(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _restore(config: BrokerConfig, arguments: argparse.Namespace) -> _Saved:
    parent = config.metadata_directory
    with closing(_open(arguments.file)) as archive:
        saved = _read_manifest(archive, arguments.file)
        _check_fits(saved, config, arguments)
        held = LogDirectory.acquire(parent)
        try:
            _check_identity(held.meta, saved, parent)
            _put_back(archive, saved, parent, arguments, is_formatted=held.meta is not None)
            # The clean-shutdown file is older than this metadata: the next start recovers the logs as after a crash.
            for directory in {parent, *config.log_directories}:
                (directory / CLEAN_SHUTDOWN_NAME).unlink(missing_ok=True)
        finally:
            held.release()
    return saved


def _open(file: Path) -> tarfile.TarFile:
    """Open an archive; raises CommandError for another file, and OSError."""
    try:
        return tarfile.open(file, "r:")
    except tarfile.ReadError:
        raise CommandError(f"{file} is not a tar archive of `pybroker snapshot save`") from None


def _put_back(
    archive: tarfile.TarFile, saved: _Saved, parent: Path, arguments: argparse.Namespace, *, is_formatted: bool
) -> None:
    """Restore the files, `meta.properties` last: an interrupted restore leaves no formatted directory."""
    log = parent / DIRECTORY_NAME
    if log.exists() and not arguments.replace:
        raise CommandError(f"{log} exists already; --replace renames and keeps it")
    with tempfile.TemporaryDirectory(dir=parent, prefix=".restored-") as name:
        copy = Path(name)
        _extract(archive, saved, copy, arguments.file)
        check_metadata_log(copy, clean_shutdown=False, partitions=[])
        # Partitions of topics created after the save remain: the operator has accepted that with the restore.
        (copy / DIRECTORY_NAME / ACCEPT_LOSS).touch()
        sync_directory(copy / DIRECTORY_NAME)
        if log.exists():
            log.rename(log.with_name(f"{log.name}.{os.urandom(16).hex()}-replaced"))
        (copy / DIRECTORY_NAME).rename(log)
        if (copy / _BOOTSTRAP).exists():
            (copy / _BOOTSTRAP).replace(parent / _BOOTSTRAP)
        sync_directory(parent)
        if not is_formatted:
            (copy / FILE_NAME).replace(parent / FILE_NAME)
    sync_directory(parent)


def _read_manifest(archive: tarfile.TarFile, file: Path) -> _Saved:
    try:
        member = archive.getmember(_MANIFEST)
        stream = archive.extractfile(member)
        if stream is None or member.size > _MOST_MANIFEST_BYTES:
            raise KeyError(_MANIFEST)
        reported = json.loads(stream.read())
        if reported.pop("version") != _VERSION or not all(map(_MEMBER.fullmatch, reported["files"])):
            raise KeyError("files")
        return _Saved(**reported)
    except (KeyError, ValueError, TypeError):
        raise CommandError(f"{file}: not an archive that `pybroker snapshot save` of this version writes") from None


def _check_fits(saved: _Saved, config: BrokerConfig, arguments: argparse.Namespace) -> None:
    if saved.node_id != config.node_id:
        raise CommandError(f"{arguments.file} is of node {saved.node_id}, and the settings are of {config.node_id}")
    if not config.is_controller:
        raise CommandError(
            f"node {config.node_id} is not a controller: it fetches its metadata from the controllers, and needs no "
            "restore"
        )
    is_one_of_several = len(config.quorum_voters) > 1 or bool(config.quorum_bootstrap_servers)
    if is_one_of_several and not arguments.every_voter_is_lost:
        raise CommandError(
            f"node {config.node_id} is one of several voters. A voter without records that it has acknowledged can "
            "cause the loss of committed records: format it and let it fetch the metadata from the other voters. If no "
            "other voter has newer metadata, use --every-voter-is-lost"
        )


def _check_identity(meta: MetaProperties | None, saved: _Saved, parent: Path) -> None:
    if meta is not None and (meta.cluster_id, meta.node_id) != (saved.cluster_id, saved.node_id):
        raise CommandError(
            f"{parent} is of node {meta.node_id} of cluster {meta.cluster_id}, and the archive of node {saved.node_id} "
            f"of cluster {saved.cluster_id}"
        )


def _extract(archive: tarfile.TarFile, saved: _Saved, copy: Path, file: Path) -> None:
    """Extract the files of the manifest, ignoring others in the archive. Raises CommandError for a mismatch."""
    (copy / DIRECTORY_NAME).mkdir()
    for name, facts in sorted(saved.files.items()):
        try:
            member = archive.getmember(name)
        except KeyError:
            raise CommandError(f"{file}: {name} is missing") from None
        stream = archive.extractfile(member)
        if stream is None or member.size != facts["size"]:
            raise CommandError(f"{file}: {name} is damaged")
        with (copy / name).open("xb") as written:
            shutil.copyfileobj(stream, written)
            written.flush()
            os.fsync(written.fileno())
        if _facts(copy / name) != facts:
            raise CommandError(f"{file}: {name} is damaged")
    sync_directory(copy / DIRECTORY_NAME)

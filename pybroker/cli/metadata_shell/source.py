"""Where the shell's image comes from: a snapshot, a segment of the metadata log, or a directory with both.

Owns the choice of files and their order. Only reads. The directory may be a running node's: uncommitted records at the
end of the log are included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.native import parse_metadata_batches
from pybroker.controller.quorum.snapshot.snapshots import SUFFIX, newest_snapshot, read_image
from pybroker.metadata.errors import MetadataError
from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.metadata.loader import Loader
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.frame import decode_record

if TYPE_CHECKING:
    from pathlib import Path

    from pybroker.metadata.image import MetadataImage

_LOG = "__cluster_metadata-0"


def read_source(path: Path) -> MetadataImage:
    """Read the image from a file or a directory. Raises CommandError."""
    try:
        if path.is_dir():
            return _read_directory(path / _LOG if (path / _LOG).is_dir() else path)
        if path.suffix == SUFFIX:
            return read_image(path)
        if path.suffix == ".log":
            return _read_segments(EMPTY_IMAGE, [path])
    except (MetadataLogError, MetadataError, ProtocolError, OSError) as error:
        raise CommandError(f"{path}: {error}") from None
    raise CommandError(f"{path}: expected a {SUFFIX} file, a .log file, or a directory with them")


def _read_directory(directory: Path) -> MetadataImage:
    snapshot = newest_snapshot(directory)
    segments = sorted(directory.glob("*.log"))
    if snapshot is None and not segments:
        raise CommandError(f"{directory}: no snapshot and no log is here, expected those of {_LOG}")
    image = EMPTY_IMAGE if snapshot is None else read_image(snapshot.path)
    return _read_segments(image, segments)


def _read_segments(image: MetadataImage, segments: list[Path]) -> MetadataImage:
    loader = Loader()
    loader.replace(image)
    loader.publish()
    expected = image.offset + 1
    for path in segments:
        batches, _ = parse_metadata_batches(path.read_bytes())
        for base, last, epoch, _, is_control, values in batches:
            if last < expected:
                continue
            if base != expected:
                raise CommandError(f"{path}: records {expected} to {base - 1} are missing before it")
            records = () if is_control else map(decode_record, values)
            loader.load(records, last, epoch)
            expected = last + 1
    return loader.publish()

"""The folder in which several processes count, with the counts of those that have ended."""

import contextlib
import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

from tollgate.settings import environment_variable

# Where the system shows memory as a folder.
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - TemporaryDirectory makes one of our own in it
_SUMMED: Final = ("counter", "histogram")
# In place of a process in the names of files: no process has it.
_ENDED: Final = 0
# Of an entry besides its key: a length, padding, a value and a moment.
_ENTRY_BYTES: Final = 32
_READS_MAX: Final = 5


@contextlib.contextmanager
def open_shared_counts() -> Iterator[Path]:
    """Make the folder, and delete it afterwards; raise ClickException where none can be made.

    It is in memory unless TMPDIR names a place. A process that counts in a mapped file is killed
    (SIGBUS) when the disk of that file is full, and a container may have no disk to write to.
    """
    in_memory = environment_variable("TMPDIR") is None and os.access(_MEMORY, os.W_OK)
    try:
        made = TemporaryDirectory(prefix="tollgate-metrics-", dir=_MEMORY if in_memory else None)
    except OSError as failure:
        raise click.ClickException(
            f"Several processes need a folder to count in; TMPDIR names one. {failure}"
        ) from failure
    with made as folder:
        yield Path(folder)


def add_ended(folder: Path, pid: int) -> None:
    """Add the counts of a process that has ended to those of all that ended before it.

    In files of their own they would be read by every scrape, at 5 ms a process.
    """
    for gauge in folder.glob(f"gauge_*_{pid}.db"):
        gauge.unlink(missing_ok=True)
    for kind in _SUMMED:
        part = folder / f"{kind}_{pid}.db"
        # Where no room is left, the file stays, and is read by itself.
        with contextlib.suppress(OSError):
            if part.exists():
                _add(folder / f"{kind}_{_ENDED}.db", part)


def _add(whole: Path, part: Path) -> None:
    sums = defaultdict[str, float](float)
    for file in (whole, part):
        # A process that was killed as it made its file has left an empty one.
        if file.exists() and file.stat().st_size:
            values = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call]
            for key, value, *_ in values:
                sums[key] += value
    new = whole.with_suffix(".new")
    # Written before it is mapped: what is an error here would be the end of the process then.
    new.write_bytes(bytes(8 + sum(len(key.encode()) + _ENTRY_BYTES for key in sums)))
    written = MmapedDict(str(new))  # type: ignore[no-untyped-call]
    for key, value in sums.items():
        written.write_value(key, value, 0.0)  # type: ignore[no-untyped-call]
    written.close()  # type: ignore[no-untyped-call]
    new.replace(whole)
    part.unlink()


def render_sums(folder: Path) -> bytes:
    """Return the sums over all processes in Prometheus's text format."""
    for _ in range(_READS_MAX):
        before = _list_files(folder)
        # A file may be gone by now, or just made and empty.
        with contextlib.suppress(FileNotFoundError, struct.error):
            registry = CollectorRegistry()
            MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
            text = generate_latest(registry)
            # Else the counts of a process that ended meanwhile may be in it twice, or not at all.
            if _list_files(folder) == before:
                return text
    raise RuntimeError("the counts of the processes change faster than they are read")


def _list_files(folder: Path) -> set[tuple[str, int]]:
    """Return the files, each of which is another after it was replaced."""
    with os.scandir(folder) as files:
        return {(file.name, file.inode()) for file in files}

"""A command on a pseudo-terminal, whose questions are answered as a person would."""

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.infra.translation import ROOT


@dataclass(frozen=True)
class Session:
    """What a command showed, its exit status, and the answers that it never asked for."""

    status: int
    screen: str
    unasked: tuple[tuple[str, str], ...]


def on_terminal(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    answers: Sequence[tuple[str, str]] = (),
    *,
    silence_max_s: float = 180.0,
    folder: Path = ROOT,
) -> Session:
    """Run a command in a folder; each answer waits for the words of its question.

    A question that has no answer is silence, which fails.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, env=dict(environment), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown, read_to, left = b"", 0, list(answers)
    try:
        while chunk := _read(ours, silence_max_s, shown):
            shown += chunk
            if left and left[0][0].encode() in shown[read_to:]:
                read_to = len(shown)
                os.write(ours, left.pop(0)[1].encode() + b"\n")
        status = process.wait(silence_max_s)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return Session(status, shown.decode(), tuple(left))


def _read(terminal: int, silence_max_s: float, shown: bytes) -> bytes:
    """Return what was written next; nothing once the command has ended."""
    readable, _, _ = select.select([terminal], [], [], silence_max_s)
    if not readable:
        raise TimeoutError(f"nothing was written for {silence_max_s} s after {shown[-400:]!r}")
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's word for a terminal without a writer
        return b""

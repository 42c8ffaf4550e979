"""An agent on a pseudo-terminal, as a developer sits before it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from time import monotonic

# What programs ask a terminal at their start, and a plain terminal's answers.
_ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?6c"}
_CONTROL = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\[(?>=][0-9;?<>=]*[ -/]*[@-~]|\x1b."
)
_ROWS, _COLUMNS = 50, 160


@dataclass
class Terminal:
    """A running program; `shown` is what it wrote, without control sequences and spaces."""

    process: subprocess.Popen[bytes]
    _ours: int
    _written: bytes = field(default=b"", init=False)

    @property
    def shown(self) -> str:
        """Return what was written, without control sequences and spaces."""
        # Programs move the cursor over a space instead of writing it.
        plain = _CONTROL.sub(b"", self._written).decode(errors="replace")
        return "".join(plain.split())

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def wait_for(self, words: str, patience_s: float = 60.0) -> None:
        """Read until the words are shown; raise if they do not come."""
        wanted, give_up_s = "".join(words.split()), monotonic() + patience_s
        while wanted not in self.shown:
            readable, _, _ = select([self._ours], [], [], 0.2)
            if readable and not self._read():
                raise AssertionError(f"it ended without {words!r}: {self.shown[-2000:]}")
            if monotonic() > give_up_s:
                raise AssertionError(f"no {words!r} is shown: {self.shown[-2000:]}")

    def _read(self) -> bool:
        chunk = b""
        with suppress(OSError):  # Linux's word for a terminal without a writer
            chunk = os.read(self._ours, 65536)
        self._written += chunk
        for asked, answer in _ANSWERS.items():
            if asked in chunk:
                os.write(self._ours, answer)
        return bool(chunk)

    def close(self) -> None:
        """End the program."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Terminal:
    """Start a program whose controlling terminal is a pseudo-terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["setsid", "--ctty", *command],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    return Terminal(process, ours)

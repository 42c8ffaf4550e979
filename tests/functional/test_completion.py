"""Completion of `tollgate` in a real interactive shell, set up as its help says."""

import os
import pty
import re
import select
import shutil
import subprocess
from pathlib import Path
from time import monotonic

import pytest

from tests.local_server import ROOT, TOLLGATE, environment

_WAIT_S = 30.0
SETUP = 'eval "$(_TOLLGATE_COMPLETE=bash_source tollgate)"'


class Shell:
    """An interactive bash on a pseudo-terminal, with `tollgate` on its path."""

    def __init__(self, home: Path, bash: str) -> None:
        self._terminal, child = pty.openpty()
        variables = {
            "HOME": str(home),
            "PATH": f"{TOLLGATE.parent}:{os.defpath}",
            "PS1": "READY> ",
            "TERM": "dumb",
        }
        self._process = subprocess.Popen(
            [bash, "--norc", "--noprofile", "-i"],
            cwd=ROOT,
            env={**environment(), **variables},
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)

    def type(self, keys: str, until: str) -> str:
        """Type keys and return what the terminal shows up to and with a pattern."""
        os.write(self._terminal, keys.encode())
        shown, stop_s = "", monotonic() + _WAIT_S
        while not re.search(until, shown):
            left_s = stop_s - monotonic()
            ready, _, _ = select.select([self._terminal], [], [], max(left_s, 0))
            assert ready, f"{until!r} did not come: {shown!r}"
            shown += os.read(self._terminal, 65_536).decode()
        return shown

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    help_ = subprocess.run([TOLLGATE, "-h"], capture_output=True, text=True, check=True).stdout
    assert SETUP in " ".join(help_.split())
    shell = Shell(tmp_path, bash)
    try:
        shell.type("", "READY> ")
        shell.type(f"{SETUP}; echo set=up\n", r"\nset=up\r?\nREADY> ")
        shell.type("tollgate pub\t", "tollgate publish ")
        shell.type("--reg\t", "--region ")
    finally:
        shell.close()

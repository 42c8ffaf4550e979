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
_IN_FISH = '_TOLLGATE_COMPLETE=fish_source tollgate | source; complete -C "tollgate pub"'
# The setup, the function that it registers, and what this function asks for.
_IN_ZSH = """
    autoload -U compinit; compinit -u -D
    eval "$(_TOLLGATE_COMPLETE=zsh_source tollgate)"; print $_comps[tollgate]
    COMP_WORDS="tollgate pub" COMP_CWORD=1 _TOLLGATE_COMPLETE=zsh_complete tollgate
"""
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


def test_fish_and_zsh_complete_commands(tmp_path: Path) -> None:
    fish, zsh = shutil.which("fish"), shutil.which("zsh")
    if fish is None or zsh is None:
        pytest.skip("there is no fish, or no zsh, here")
    asked = {
        fish: ["-c", _IN_FISH],
        zsh: ["-fic", _IN_ZSH],
    }
    for shell, arguments in asked.items():
        variables = {"HOME": str(tmp_path), "PATH": f"{TOLLGATE.parent}:{os.defpath}"}
        ran = subprocess.run(
            [shell, *arguments],
            env={**environment(), **variables},
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=True,
        )
        assert "publish" in ran.stdout, shell
        assert shell == fish or "_tollgate_completion" in ran.stdout


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

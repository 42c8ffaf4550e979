"""The newest clients, which `make test` does not install: `install.sh` puts them below a folder.

TOLLGATE_CLIENTS names that folder; a test whose client is missing is skipped.
"""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.local_server import environment

_SCRIPTS: Final = Path(__file__).with_name("clients")


def _installed(name: str) -> Path:
    folder = os.environ.get("TOLLGATE_CLIENTS")
    if folder is None or not (found := Path(folder) / name).exists():
        pytest.skip(f"no {name}: run install.sh, and set TOLLGATE_CLIENTS to its folder")
    return found


def find_agent(name: str) -> str:
    """Return the path of an agent's program."""
    return str(_installed(f"node/node_modules/.bin/{name}"))


def node_script(name: str, folder: Path) -> list[str]:
    """Return the command that runs a script of ours next to its packages, copied into a folder."""
    modules, node = _installed("node/node_modules"), shutil.which("node")
    if node is None:
        pytest.skip("no node")
    (folder / "node_modules").symlink_to(modules)
    for script in _SCRIPTS.glob("*.mjs"):
        shutil.copy(script, folder)
    return [node, str(folder / name)]


def python(client: str) -> str:
    """Return the interpreter of a client's environment."""
    return str(_installed(f"{client}/bin/python"))


def python_script(client: str, name: str) -> list[str]:
    """Return the command that runs a script of ours in a client's environment."""
    return [python(client), str(_SCRIPTS / name)]


@cache
def version(package: str) -> str:
    """Return the installed version of a package: `npm:openai`, or `pypi:openai`."""
    registry, _, name = package.partition(":")
    if registry == "npm":
        manifest = _installed(f"node/node_modules/{name}/package.json")
        return str(json.loads(manifest.read_text())["version"])
    asked = f"from importlib.metadata import version; print(version({name!r}))"
    command = [python(name), "-c", asked]
    return subprocess.check_output(command, text=True, env=environment()).strip()

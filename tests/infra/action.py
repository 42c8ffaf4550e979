"""The action of a gateway's repository: its steps, and a run of one as GitHub runs it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.local_server import ROOT, TOLLGATE

FOLDER: Final = ROOT / ".github" / "actions" / "gateway"
TEXT: Final = (FOLDER / "action.yml").read_text()
ACTION: Final[dict[str, Any]] = yaml.load(TEXT, Loader=yaml.BaseLoader)
STEPS: Final[list[dict[str, Any]]] = ACTION["runs"]["steps"]
NAMED: Final[Mapping[str, dict[str, Any]]] = {it["name"]: it for it in STEPS if "name" in it}
# Variables that some step states; a step that does not state one runs without it, as on GitHub.
_STATED: Final = frozenset(name for step in STEPS for name in step.get("env", ()))
_VALUES: Final = {"TOLLGATE": str(TOLLGATE), "TEMPLATE": "infra/template.yaml"}
# Records what it is called with; one pull request is open if the file `open` is there.
GH: Final = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$HOME/gh.txt"
case "$1 $2" in "pr list") cat "$HOME/open" 2>/dev/null || true;; esac
"""


def run_step(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step in a folder, with the variables that the step states.

    The runner's files are next to the folder.
    """
    home = folder.parent
    tools = home / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    stated = {key: _VALUES.get(key, "") for key in NAMED[name].get("env", ())}
    stated |= {key: it for key, it in variables.items() if key in stated or key not in _STATED}
    path = os.pathsep.join([str(tools), str(TOLLGATE.parent), "/usr/bin", "/bin"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", NAMED[name]["run"]],
        cwd=folder,
        env={
            "PATH": path,
            "PYTHONPATH": str(ROOT / "functions"),
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "RUNNER_TEMP": str(home),
            "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_OUTPUT": str(home / "output"),
            "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
        }
        | stated,
        capture_output=True,
        text=True,
        check=False,
    )


def git(folder: Path, *commands: str) -> str:
    """Run git commands as an author, and return what they print."""
    author = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    said = ""
    for command in commands:
        ended = subprocess.run(
            ["git", *author, *command.split()],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        said += ended.stdout
    return said

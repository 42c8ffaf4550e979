"""Commands that messages and pages name are commands of the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cells import cells
from tests.local_server import ROOT
from tollgate.cli.main import main

_QUOTED = re.compile(r"`tollgate ([^`]+)`")
_TYPED = re.compile(r"^(?:\$ )?tollgate (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def named(path: Path) -> Iterator[str]:
    """Yield each command that a page, or a text of a module, names."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from _QUOTED.findall(text)
        for block in _BLOCK.findall(text):
            yield from _TYPED.findall(block.replace("\\\n", " "))
        return
    # Most modules name no command, and parsing them takes seconds of each test process.
    if not _QUOTED.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _QUOTED.findall(node.value)


def problem(command: str) -> str | None:
    """Return what the command line does not know of a command, None if it knows all."""
    known: click.Command = main
    words = re.split(r"[#|]", command)[0].split()
    while isinstance(known, click.Group) and words and not words[0].startswith("-"):
        found = known.get_command(click.Context(known), words[0])
        if found is None:
            return f"no command {words[0]}"
        known, words = found, words[1:]
    names = {
        name
        for option in known.get_params(click.Context(known))
        for name in (*option.opts, *option.secondary_opts)
    }
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    unknown = sorted(used - names - {"--help", "-h", "--version"})
    return f"no option {', '.join(unknown)}" if unknown else None


_PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "formats").glob("*.md")),
    *sorted((ROOT / "infra").rglob("*.md")),
    *sorted((ROOT / "functions" / "tollgate").rglob("*.py")),
]


@cells(
    "path", [path for path in _PAGES if any(named(path))], ids=lambda it: str(it.relative_to(ROOT))
)
def test_every_command_that_is_named_exists(path: Path) -> None:
    found = {command: problem(command) for command in named(path)}
    assert {command: wrong for command, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("credits grant", "no command grant"),
        ("nothing", "no command nothing"),
        ("keys ls --nothing", "no option --nothing"),
        ("keys ls --json", None),
        ("credits add 25 --id x   # a comment --nothing", None),
    ],
)
def test_what_counts_as_existing(command: str, wrong: str | None) -> None:
    assert problem(command) == wrong

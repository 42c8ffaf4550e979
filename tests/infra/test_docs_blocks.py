"""Every block of code in the documentation can be parsed by the program that reads it.

`test_named_commands.py` resolves commands and options, and `test_readme.py` runs the README's
blocks.
"""

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest
import yaml

from tests.local_server import ROOT

_BLOCK: Final = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Blocks of these languages are excerpts, or have no parser among the development libraries.
_UNPARSED: Final = {"diff", "ini", "js", "sql"}


def parse_shell(text: str) -> None:
    """Raise ValueError for text that the shell cannot parse; nothing is run."""
    parsed = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
    if parsed.returncode:
        raise ValueError(parsed.stderr)


PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "json": json.loads,
    "python": ast.parse,
    "sh": parse_shell,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


def problems_of(text: str) -> Iterator[str]:
    """Yield a line for each block that cannot be parsed."""
    for language, block in _BLOCK.findall(text):
        if language in _UNPARSED:
            continue
        try:
            PARSERS[language](block)
        except (KeyError, SyntaxError, ValueError, yaml.YAMLError) as failed:
            yield f"{language}: {block.splitlines()[0]}: {failed}"


def test_every_block_of_code_can_be_parsed() -> None:
    pages = [
        page
        for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        if _BLOCK.search(page.read_text(encoding="utf-8"))
    ]
    assert len(pages) > 20
    found = {page.name: [*problems_of(page.read_text(encoding="utf-8"))] for page in pages}
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("language", "block"),
    [
        ("json", "{"),
        ("python", "def"),
        ("sh", "if true"),
        ("toml", "a ="),
        ("yaml", "a: ["),
        ("yamll", "a: 1"),
    ],
)
def test_a_block_that_cannot_be_parsed_is_found(language: str, block: str) -> None:
    assert len([*problems_of(f"```{language}\n{block}\n```\n")]) == 1

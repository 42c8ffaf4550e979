"""A public name that two modules define is found, wherever it means two things."""

from pathlib import PurePosixPath

import pytest

from tests.tidy.names import names_have_one_meaning
from tests.tidy.source import Source

# Two files below functions/tollgate with their texts; a finding is in the second.
BROKEN = [
    ("core/a.py", "class Chain: 1", "engine/b.py", "\nclass Chain: 1", [2]),
    ("core/a.py", "def read(): 1", "web/b.py", "async def read(): 1", [1]),
    ("core/a.py", "Reply = int | str", "web/b.py", "class Reply: 1", [1]),
    ("core/a.py", "LIMIT: int = 1", "web/b.py", "LIMIT = 2", [1]),
    ("core/a.py", "FIRST = 1\nLAST = 2", "web/b.py", "FIRST, LAST = 1, 2", [1, 1]),
    ("core/a.py", "A = B = 1", "web/b.py", "B = 1", [1]),
    (
        "providers/codecs/gemini/a.py",
        "def f(): 1",
        "providers/codecs/gemini/b.py",
        "def f(): 1",
        [1],
    ),
    ("providers/codecs/gemini/a.py", "def f(): 1", "providers/shared/b.py", "def f(): 1", [1]),
    ("providers/transports/a.py", "def f(): 1", "providers/codecs/gemini/b.py", "def f(): 1", [1]),
    (
        "providers/ports/base.py",
        "class Codec: 1",
        "providers/codecs/gemini/b.py",
        "class Codec: 1",
        [1],
    ),
    ("engine/a.py", "class Part: 1", "providers/codecs/gemini/b.py", "class Part: 1", [1]),
    ("stores/wire.py", "class Part: 1", "core/b.py", "class Part: 1", [1]),
    ("ingress/wireless.py", "class Part: 1", "core/b.py", "class Part: 1", [1]),
    ("core/a.py", "def mainly(): 1", "web/b.py", "def mainly(): 1", [1]),
    ("__init__.py", "VERSION = 1", "web/b.py", "VERSION = 1", [1]),
]
KEPT = [
    ("core/a.py", "def f(x): ...\ndef f(x): 1", "web/b.py", "def g(): 1"),
    ("core/a.py", "class _Chain: 1", "engine/b.py", "class _Chain: 1"),
    ("core/a.py", "class Chain: 1", "engine/b.py", "from tollgate.core.a import Chain"),
    ("core/a.py", "def f(): 1", "engine/b.py", "class A:\n def f(self): 1"),
    ("core/a.py", "def f(): 1", "engine/b.py", "def g():\n f = 1"),
    ("core/a.py", "ROWS = {}", "engine/b.py", "ROWS['a'] = 1\nROWS.a = 1"),
    ("providers/codecs/gemini/a.py", "def f(): 1", "providers/codecs/bedrock/b.py", "def f(): 1"),
    ("providers/codecs/gemini/wire.py", "class Part: 1", "core/b.py", "class Part: 1"),
    ("core/a.py", "class Part: 1", "ingress/chat/wire/replies.py", "class Part: 1"),
    ("sweeper.py", "def handler(): 1", "rollup.py", "def handler(): 1"),
    ("cli/a.py", "def main(): 1", "cli/b.py", "def main(): 1"),
]


def lines_found(first: str, its: str, second: str, text: str) -> list[int]:
    top = PurePosixPath("functions/tollgate")
    sources = [Source(top / first, its), Source(top / second, text)]
    found = list(names_have_one_meaning(sources))
    assert {finding.path for finding in found} <= {top / second}
    return [finding.line for finding in found]


@pytest.mark.parametrize(("first", "its", "second", "text", "lines"), BROKEN)
def test_a_name_of_two_meanings_is_found(
    first: str, its: str, second: str, text: str, lines: list[int]
) -> None:
    assert lines_found(first, its, second, text) == lines


@pytest.mark.parametrize(("first", "its", "second", "text"), KEPT)
def test_a_name_of_one_meaning_is_left_alone(first: str, its: str, second: str, text: str) -> None:
    assert lines_found(first, its, second, text) == []


def test_a_third_meaning_is_found_beside_two_parallel_ones() -> None:
    paths = (
        "providers/codecs/bedrock/a.py",
        "providers/codecs/gemini/a.py",
        "providers/codecs/gemini/b.py",
    )
    sources = [Source(PurePosixPath("functions/tollgate", path), "def f(): 1") for path in paths]
    [finding] = names_have_one_meaning(sources)
    assert finding.path.name == "b.py"
    assert (
        finding.rule
        == "f is defined in functions/tollgate/providers/codecs/gemini/a.py too: rename one"
    )


def test_tests_may_name_things_as_they_like() -> None:
    paths = ("functions/tollgate/core/a.py", "tests/b.py", "infra/c.py", "functions/chat.py")
    sources = [Source(PurePosixPath(path), "class Chain: 1") for path in paths]
    assert list(names_have_one_meaning(sources)) == []

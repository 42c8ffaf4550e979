"""A large file is checked and its compiled form loaded without work that nobody needs.

Counts, not seconds: `make bench` prints those.
"""

import sys
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import FrameType

import pytest
import yaml

from bench.catalog_300 import make_routing
from tests.nightly import first
from tollgate.routing import scalars, schema
from tollgate.routing.file import compile as compiling
from tollgate.routing.file import document
from tollgate.routing.file.load import inspect
from tollgate.routing.planning.catalog import Catalog

MODELS = 300
CHECKS = Path(document.__file__).parent
TODAY = date(2026, 11, 21)


def calls_of(work: Callable[[], object]) -> Counter[str]:
    """How often work calls into each Python file."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    file = tmp_path / "routing.yaml"
    file.write_text(make_routing(MODELS), encoding="utf-8")
    return file


def test_loading_the_compiled_form_runs_no_python_for_its_decimals_and_dates(file: Path) -> None:
    content = compiling.compile_catalog(file).content
    Catalog.from_json(content)
    calls = calls_of(lambda: Catalog.from_json(content))
    # Seconds of the defaults, however many models there are.
    assert calls[scalars.__file__] < 20
    # What may run are validators of conditions and overrides, one each.
    assert calls[schema.__file__] < MODELS
    assert calls["<frozen importlib._bootstrap>"] == 0


def test_checking_a_file_reads_it_once_and_leaves_the_scanning_to_libyaml(file: Path) -> None:
    calls = calls_of(lambda: inspect(file, dev=True, today=TODAY))
    assert calls[document.__file__] < 20 * file.read_text(encoding="utf-8").count("\n")
    if yaml.__with_libyaml__:
        scanner = Path(yaml.__file__).with_name("scanner.py")
        assert calls[str(scanner)] == 0


def test_what_production_leaves_out_is_told_without_reading_again(file: Path) -> None:
    inspection = inspect(file, dev=True, today=TODAY)
    assert inspection.production is not None
    assert compiling.compile_routing(inspection.production) == compiling.compile_catalog(file)
    calls = calls_of(
        lambda: compiling.compile_routing(inspection.production or pytest.fail("none"))
    )
    assert calls[document.__file__] == 0


@pytest.mark.nightly
def test_libyaml_and_pyyaml_read_the_same_of_every_good_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_libyaml = compiling.compile_catalog(file)
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert compiling.compile_catalog(file) == by_libyaml


def steps_of(work: Callable[[], object]) -> int:
    """How many lines work runs in the checks, those of each turn of a loop."""
    steps = 0

    def note(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal steps
        if Path(frame.f_code.co_filename).parent != CHECKS:
            return None
        steps += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


CHAIN = [f"a{number}: {{ to: a{number + 1} }}" for number in range(400)]
ALIASES = {
    "each to a model": [f"a{number}: {{ to: acme/m-0 }}" for number in range(400)],
    "one long chain": [*CHAIN[:399], "a399: { to: acme/m-0 }"],
    "one long circle": [*CHAIN[:399], "a399: { to: a0 }"],
    "many into one circle": ["x: { to: y }", "y: { to: x }"]
    + [f"a{number}: {{ to: x }}" for number in range(398)],
    "all to what is not there": [f"a{number}: {{ to: gone-{number} }}" for number in range(400)],
}


@pytest.mark.parametrize("kind", first(1, ALIASES))
def test_the_work_for_an_alias_does_not_grow_with_their_number(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    text = make_routing(1)

    def steps(aliases: list[str]) -> int:
        section = "".join(f"  {alias}\n" for alias in aliases)
        file.write_text(f"{text}\naliases:\n{section}", encoding="utf-8")
        inspect(file, dev=True)  # what is made once
        return steps_of(lambda: inspect(file, dev=True))

    none, half, whole = steps([]), steps(ALIASES[kind][:200]), steps(ALIASES[kind])
    assert whole - none < 2.5 * (half - none)


def test_a_start_reads_only_the_models_that_a_request_names(file: Path) -> None:
    content = compiling.compile_catalog(file).content
    whole, started = Catalog.from_json(content), Catalog.from_build(content)
    calls = calls_of(lambda: Catalog.from_build(content))
    assert calls[schema.__file__] < 20
    assert (started.sha, started.providers, started.routes) == (
        whole.sha,
        whole.providers,
        whole.routes,
    )
    assert [*started.models] == [*whole.models]
    assert "author-0/model-0" in started.models
    assert "nobody/nothing" not in started.models
    assert dict(started.models) == dict(whole.models)
    assert started.models["author-0/model-0"] is started.models["author-0/model-0"]

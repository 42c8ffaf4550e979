"""`tollgate dev` serves what is saved, and what was good before where that is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clocks import FixedClock
from tollgate.cli.server.reload import Reloaded, RoutingSource
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.planning.catalog import Catalog

MAIN = """\
version: 1
include: [routing.d/*.yaml]
providers:
  simulator: { codec: openai_chat, transport: simulator }
"""
MODEL = """\
version: 1
models:
  test/NAME:
    name: NAME
    context: 1000
    max_output: 100
    endpoints:
      - provider: simulator
        upstream: echo
        price: { input: 1.00, output: 2.00, source: made up, checked: 2026-11-21 }
"""


class Ended(Exception):
    """There is nothing left to save."""


class Saving(FixedClock):
    """A clock on which somebody saves a file each time that the watcher sleeps."""

    def __init__(self, *saves: Callable[[], object]) -> None:
        super().__init__()
        self._saves = list(saves)

    async def sleep(self, delay_s: float) -> None:
        if not self._saves:
            raise Ended
        self._saves.pop(0)()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "routing.d").mkdir()
    (tmp_path / "routing.yaml").write_text(MAIN)
    (tmp_path / "routing.d" / "one.yaml").write_text(MODEL.replace("NAME", "one"))
    return tmp_path


async def served(folder: Path, *saves: Callable[[], object]) -> list[set[str]]:
    """The models of each catalog that was handed over."""
    source, taken = RoutingSource(folder / "routing.yaml"), list[set[str]]()
    source.read()
    with pytest.raises(Ended):
        await source.watch(
            Saving(*saves), [lambda catalog: taken.append({*map(str, catalog.models)})]
        )
    return taken


async def test_what_is_saved_is_served_and_what_is_not_is_not_read_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = folder / "routing.d" / "one.yaml"
    saves = (lambda: one.write_text(MODEL.replace("NAME", "other")), lambda: None)
    assert await served(folder, *saves) == [{"test/other"}]
    assert "routing.yaml was reloaded: 1 models (catalog " in capsys.readouterr().out


async def test_a_file_with_errors_is_told_and_the_last_good_one_served_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = folder / "routing.yaml"
    saves = (
        lambda: main.write_text(MAIN.replace("openai_chat", "openia_chat")),
        lambda: main.write_text("routes: ["),
        main.unlink,
        lambda: main.write_text(MAIN + "# mended\n"),
    )
    assert await served(folder, *saves) == [{"test/one"}]
    told = capsys.readouterr().out
    assert 'routing.yaml:4:23: error[R004] codec must be "openai_chat"' in told
    assert 'did you mean "openai_chat"?' in told
    assert told.count("stays in use.") == 3


def test_what_development_allows_is_not_among_the_errors(folder: Path) -> None:
    local = MAIN + "  ours: { codec: openai_chat, transport: http_sse, base_url: BASE }\n"
    main, one = folder / "routing.yaml", folder / "routing.d" / "one.yaml"
    main.write_text(local.replace("BASE", "http://localhost:11434/v1"))
    assert RoutingSource(main).read().models
    one.write_text(MODEL.replace("NAME", "one").replace("source: made up, ", ""))
    with pytest.raises(InvalidRouting, match="R005") as invalid:
        RoutingSource(main).read()
    assert [problem.code for problem in invalid.value.problems] == ["R005"]


async def test_a_file_that_comes_or_goes_where_a_glob_looks_is_seen(folder: Path) -> None:
    two = folder / "routing.d" / "two.yaml"
    saves = (lambda: two.write_text(MODEL.replace("NAME", "two")), two.unlink)
    assert await served(folder, *saves) == [{"test/one", "test/two"}, {"test/one"}]


async def test_an_included_file_that_was_not_there_is_seen_when_it_is(folder: Path) -> None:
    one = folder / "routing.d" / "one.yaml"
    saves = (one.unlink, lambda: one.write_text(MODEL.replace("NAME", "back")))
    assert await served(folder, *saves) == [{"test/back"}]


async def test_a_request_that_runs_keeps_what_it_was_given(folder: Path) -> None:
    source = RoutingSource(folder / "routing.yaml")
    gateways = Reloaded(source.read(), lambda catalog: catalog.sha)
    before = await gateways.for_key("key")
    gateways.replace(_repriced(folder))
    assert before != await gateways.for_key("key")


def _repriced(folder: Path) -> Catalog:
    one = folder / "routing.d" / "one.yaml"
    one.write_text(MODEL.replace("NAME", "one").replace("1.00", "3.00"))
    return RoutingSource(folder / "routing.yaml").read()

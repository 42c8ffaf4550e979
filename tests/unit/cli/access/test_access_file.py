"""access.yaml as it is read: its errors have a position, and editors know its keys."""

from pathlib import Path

import pytest

from tests.unit.cli.access.served import written
from tollgate.cli.access.access_file import AccessFile, read_access
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.routing_file import json_schema_text

ROOT = Path(__file__).parents[4]
HEAD = "version: 1\nworkspace: { id: acme }\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("teams:\n  a: {}\n  a: {}", '5:3: error[R002] duplicate key "a", first defined at 4:3'),
        ("teams: { a: { limits: { day: -5 } } }", "error[R004] day must be greater than 0"),
        ("teams: { a: { limits: { year: 5 } } }", 'error[R003] unknown key "year" in teams.a.lim'),
        ("teams: { a: { burts: 5 } }", 'did you mean "burst"?'),
        ("teams: { A b: {} }", "error[R010] the name contains characters that are not allowed"),
        ("members: { ana: { role: chief } }", "error[R004] role must be"),
        ("keys: { ci: { name: b } }", 'error[R003] unknown key "name" in keys.ci'),
        ("keys: { ci: { requests_per_minute: null } }", "requests_per_minute cannot be null"),
        ("keys: { ci: { secret: sk-tg-abcdefghijklmnop } }", 'error[R003] unknown key "secret"'),
        ("keys: { ci: { console: { limits: 2026-12-31 } } }", "console names limits, which this"),
        ("keys: { ci: { limits: {}, console: { limits: soon } } }", "error[R004] limits must be"),
        ("alerts: { http://hooks.example.com: {} }", "error[R010] the name contains characters"),
        ("alerts: { https://hooks.example.com: { events: null } }", "events cannot be null"),
        ("unlisted: { teams: disable }", 'error[R003] unknown key "teams" in unlisted'),
        ("teams: [a]", "error[R004] teams must be a mapping"),
    ],
)
def test_c100_an_error_has_a_position_and_a_sentence(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(InvalidRouting) as refused:
        written(tmp_path, f"{HEAD}{text}\n")
    assert problem in str(refused.value)
    assert "abcdefghijklmnop" not in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "access.yaml"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("version: 2\nworkspace: { id: acme }\n", "version must be 1"),
        ("version: 1\nworkspace: { budget: 5 }\n", '"id" is missing in workspace'),
        ("version: 1\nworkspace: { id: acme, budget: -1 }\n", "budget must be greater than 0"),
    ],
)
def test_c100_an_error_outside_the_sections_is_reported(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(InvalidRouting, match=problem):
        written(tmp_path, text)


def test_the_example_of_the_page_is_valid() -> None:
    file = read_access(ROOT / "docs/examples/people/access.yaml")
    assert file.keys is not None
    assert set(file.keys) == {"search-batch"}


def test_editors_get_the_schema_of_the_file() -> None:
    written_schema = (ROOT / "infra/schema/access.v1.json").read_text(encoding="utf-8")
    assert written_schema == json_schema_text(AccessFile), (
        "python -m tollgate.cli.access.access_file > infra/schema/access.v1.json writes it"
    )

"""`tollgate import litellm-keys`: teams, users and virtual keys as commands."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.main import main

TEAM = {"team_id": "T-1", "team_alias": "Red team", "max_budget": 500, "budget_duration": "30d"}
USER = {
    "user_id": "ann@acme.example",
    "user_email": "ann@acme.example",
    "user_role": "internal_user",
    "teams": ["T-1"],
    "models": ["no-such", "gpt-*"],
}
KEY = {
    "key_alias": "ci",
    "team_id": "T-1",
    "user_id": "ann@acme.example",
    "max_budget": 12.5,
    "budget_duration": "1d",
    "rpm_limit": 30,
    "tpm_limit": 90000,
    "max_parallel_requests": 4,
    "models": ["all-team-models"],
    "expires": "2099-01-01T00:00:00+02:00",
    "token": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
}


def run(folder: Path, **exports: Any) -> Result:
    options: list[str] = []
    for name, content in exports.items():
        path = folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        options += [f"--{name}", str(path)]
    return CliRunner().invoke(main, ["import", "litellm-keys", *options])


def commands(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [shlex.split(line) for line in result.stdout.splitlines() if "tollgate " in line]


def keys(folder: Path, *rows: Mapping[str, Any]) -> Result:
    return run(folder, teams=[TEAM], users={"users": [USER]}, keys={"keys": [*rows]})


def test_each_team_user_and_key_becomes_a_command_with_its_limits(tmp_path: Path) -> None:
    result = keys(tmp_path, KEY)
    team, member, key = commands(result)
    assert team == shlex.split(
        "tollgate teams create t-1 --display-name 'Red team' --limit month=500"
    )
    assert member == shlex.split(
        "tollgate members create ann@acme.example --role developer --email ann@acme.example "
        "--team t-1 --model no-such --model 'gpt-*'"
    )
    assert key == shlex.split(
        "tollgate keys create --team t-1 --member ann@acme.example "
        "--expires 2098-12-31T22:00:00Z --limit day=12.5 --rpm 30 --tpm 90000 --concurrency 4 -- ci"
    )
    assert KEY["token"] not in result.output


def test_the_options_are_those_of_the_commands(tmp_path: Path) -> None:
    for _, group, verb, *options in commands(keys(tmp_path, KEY)):
        said = CliRunner().invoke(main, [group, verb, "--help"]).output
        for option in options[: options.index("--") if "--" in options else None]:
            assert not option.startswith("--") or f"{option} " in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"team_id": "gone"}, "its team was not created: not created"),
        ({"user_id": "gone"}, "its member was not created: not created"),
        ({"blocked": True}, "is blocked or has expired: not created"),
        ({"expires": "2020-01-01T00:00:00Z"}, "is blocked or has expired: not created"),
    ],
)
def test_no_key_escapes_a_limit(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    result = keys(tmp_path, KEY | change)
    assert [each[1] for each in commands(result)] == ["teams", "members"]
    assert f"key ci: {reason}" in result.stderr


def test_a_key_of_a_blocked_team_is_not_created(tmp_path: Path) -> None:
    result = run(tmp_path, teams=[TEAM | {"blocked": True}], users=[USER], keys=[KEY])
    assert [each[1] for each in commands(result)] == ["members"]


def test_what_restricts_a_key_and_is_not_copied_is_named(tmp_path: Path) -> None:
    row = KEY | {"allowed_routes": ["/chat"], "rpm_limit": None, "budget_duration": "12d"}
    result = keys(tmp_path, row, {"key_name": "sk-...a", "team_id": "litellm-dashboard"})
    assert len(commands(result)) == 3
    for text in (
        "its allowed_routes has no counterpart",
        "has no rpm_limit: a new key has 60 a minute",
        "a budget of 12d became a monthly budget",
    ):
        assert f"key ci: {text}" in result.stderr


def test_a_table_as_csv_is_read_like_the_answer_of_the_api(tmp_path: Path) -> None:
    table = 'key_alias,max_budget,budget_duration,models,blocked,rpm_limit\nci,5,7d,"{a,b}",f,9\n'
    [key] = commands(run(tmp_path, keys=table))
    assert key == shlex.split(
        "tollgate keys create --limit week=5 --rpm 9 --model a --model b -- ci"
    )


def test_a_name_is_never_run_by_the_shell(tmp_path: Path) -> None:
    row = KEY | {"key_alias": "x'; rm -rf $(HOME)\n\x1b[31m`id`", "rpm_limit": None}
    result = keys(tmp_path, row)
    assert shlex.split(result.stdout, comments=True)[-1] == "x'; rm -rf $(HOME)??[31m`id`"


@pytest.mark.parametrize("text", ["{}", "[", '{"keys": 3}'])
def test_a_file_that_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    result = run(tmp_path, keys=text)
    assert (result.exit_code, "Traceback" in result.output) == (1, False)

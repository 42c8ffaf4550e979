"""`tollgate teams` and `tollgate members` against a running gateway.

Keeps C61, C90, C91.
"""

import json
import shlex
import time
from dataclasses import replace
from pathlib import Path

import openai

from tests.functional.command_line import on_screen, printed, run, server
from tests.local_server import LocalServer

__all__ = ["server"]


def test_c61_a_team_is_made_limited_shown_and_deleted(server: LocalServer) -> None:
    made = json.loads(
        printed(server, "teams", "create", "search", "--limit", "day=5", "--rpm", "90", "--json")
    )
    assert (made["limits"], made["requests_per_minute"]) == ({"day": 5.0}, 90)
    changed = json.loads(
        printed(server, "teams", "update", "search", "--limit", "month=50", "--no", "rpm", "--json")
    )
    assert changed["limits"] == {"day": 5.0, "month": 50.0}
    assert changed["requests_per_minute"] is None
    shown = on_screen(server, "teams", "show", "search", columns=80)
    assert all(len(line) <= 80 for line in shown), shown
    bars = [line for line in shown if "░" * 20 in line]
    assert [line.split()[0] for line in bars] == ["day", "month"]
    assert any("$5.00 of $5.00 left, until " in line for line in shown)
    assert printed(server, "teams", "ls").splitlines()[1].split("\t")[0] == "search"
    piped = printed(server, "teams", "show", "search")
    assert "day 5" in piped

    printed(server, "keys", "create", "crawler", "--team", "search")
    refused = run(server, "teams", "delete", "search")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Team search is in use: keys 1, members 0. Move them first." in refused.stderr
    listed = json.loads(printed(server, "keys", "ls", "--team", "search", "--json"))
    assert [key["name"] for key in listed] == ["crawler"]
    printed(server, "keys", "update", "crawler", "--no", "team")
    assert printed(server, "teams", "delete", "search") == "Team search is deleted.\n"
    assert printed(server, "teams", "ls") == "id\tleft\tlimits\theld\tname\tcreated\n"
    gone = json.loads(printed(server, "teams", "ls", "--deleted", "--json"))
    assert [team["id"] for team in gone] == ["search"]
    again = run(server, "teams", "create", "search")
    assert "A team search exists or existed" in again.stderr


def test_c91_a_member_has_keys_spends_and_is_removed(server: LocalServer) -> None:
    printed(server, "teams", "create", "ranking")
    ana = "ana@acme.example"
    printed(server, "members", "create", ana, "--team", "ranking", "--limit", "total=1")
    secret = printed(server, "keys", "create", "ana-laptop", "--member", ana).strip()
    with openai.OpenAI(base_url=server.base_url, api_key=secret, max_retries=0) as client:
        client.chat.completions.create(
            model="test/echo", messages=[{"role": "user", "content": "now"}]
        )
    for name, expected in (("member", ana), ("team", "ranking")):
        spent = json.loads(printed(server, "spend", "--by", name, "--json"))["data"]
        assert expected in [row[name] for row in spent]
        found = json.loads(printed(server, "generations", "ls", f"--{name}", expected, "--json"))
        assert [record["key_name"] for record in found] == ["ana-laptop"]
    own = json.loads(printed(replace(server, management_key=secret), "keys", "whoami", "--json"))
    assert [level["id"] for level in own["levels"]] == [ana, "ranking"]
    assert own["tightest"]["level"] == "member"
    shown = on_screen(server, "members", "show", ana, columns=80)
    assert all(len(line) <= 80 for line in shown), shown
    assert any("$1.00 left" in line or "of $1.00 left" in line for line in shown)

    assert printed(server, "members", "remove", ana) == f"Member {ana} is removed.\n"
    assert printed(server, "members", "remove", ana) == f"Member {ana} was removed before.\n"
    ended_s = time.monotonic() + 10
    refused = run(replace(server, management_key=secret), "keys", "whoami")
    while not refused.returncode:
        assert time.monotonic() < ended_s, "A removed member is refused within five seconds."
        refused = run(replace(server, management_key=secret), "keys", "whoami")
    assert "(invalid_api_key, " in refused.stderr
    entries = json.loads(printed(server, "audit", "--target", ana, "--json"))
    assert [entry["action"] for entry in entries] == ["member.remove", "member.create"]


def test_c91_the_operator_adds_a_first_owner_and_nobody_else_does(server: LocalServer) -> None:
    refused = run(server, "members", "create", "eva", "--role", "owner")
    assert "Only an owner or the operator may add and change owners." in refused.stderr
    printed(server, "workspaces", "create", "shop")
    there = ("--workspace", "shop")
    printed(server, "members", "create", "eva", "--role", "owner", *there)
    demoted = run(server, "members", "update", "eva", "--role", "viewer", *there)
    assert demoted.returncode == 1
    assert "owner" in demoted.stderr
    rows = printed(server, "members", "ls", *there).splitlines()
    assert [row.split("\t")[:2] for row in rows[1:]] == [["eva", "owner"]]


def test_the_script_of_an_import_creates_teams_members_and_keys(
    server: LocalServer, tmp_path: Path
) -> None:
    exports = {
        "teams": [{"team_id": "Red", "max_budget": 500, "budget_duration": "30d"}],
        "users": [{"user_id": "eve@acme.example", "teams": ["Red"], "user_role": "internal_user"}],
        "keys": [
            {
                "key_alias": "- nightly",
                "team_id": "Red",
                "user_id": "eve@acme.example",
                "max_budget": 2.5,
                "budget_duration": "1d",
                "rpm_limit": 30,
                "models": ["test/echo"],
                "expires": "2099-01-01T00:00:00Z",
            }
        ],
    }
    options: list[str] = []
    for name, rows in exports.items():
        (tmp_path / name).write_text(json.dumps(rows))
        options += [f"--{name}", str(tmp_path / name)]
    for line in printed(server, "import", "litellm-keys", *options).splitlines():
        if line.startswith("tollgate "):
            printed(server, *shlex.split(line)[1:])
    [key] = json.loads(printed(server, "keys", "ls", "--team", "red", "--json"))
    assert (key["name"], key["member_id"]) == ("- nightly", "eve@acme.example")
    assert (key["models"], key["requests_per_minute"]) == (["test/echo"], 30)
    assert key["expires_at"].startswith("2099-01-01T00:00:00")
    shown = json.loads(printed(server, "teams", "show", "red", "--json"))
    assert shown["limits"] == {"month": 500.0}

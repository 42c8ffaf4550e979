"""`tollgate keys` against a running gateway: rights, rotation, content.

Keeps C60, C61, C67, C69.
"""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import openai
import pytest

from tests.functional.command_line import on_screen, printed, run
from tests.local_server import LocalServer


def test_c60_a_name_belongs_to_one_key_and_finds_its_spending(server: LocalServer) -> None:
    ids = []
    for _ in range(2):
        secret = printed(server, "keys", "create", "nightly").strip()
        with openai.OpenAI(base_url=server.base_url, api_key=secret, max_retries=0) as client:
            client.chat.completions.create(
                model="test/echo", messages=[{"role": "user", "content": "now"}]
            )
        again = run(server, "keys", "create", "nightly")
        assert (again.returncode, again.stdout) == (1, "")
        assert "A key named nightly exists already" in again.stderr
        ids.append(json.loads(printed(server, "keys", "show", "nightly", "--json"))["id"])
        printed(server, "keys", "update", "nightly", "--rename", f"old {ids[-1]}")
    printed(server, "keys", "update", ids[1], "--rename", "nightly")

    for named in ("nightly", ids[1]):
        listed = json.loads(printed(server, "generations", "ls", "--key", named, "--json"))
        assert [record["key_id"] for record in listed] == [ids[1]]


def test_c67_an_unknown_key_is_an_error_that_suggests(server: LocalServer) -> None:
    for asked in (("generations", "ls", "--key"), ("keys", "show")):
        refused = run(server, *asked, "local inferense")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "no key with the name or id local inferense. Did you mean local inf" in (
            refused.stderr
        )


def test_c61_c91_a_read_key_lists_and_changes_nothing(server: LocalServer) -> None:
    secret = printed(server, "keys", "create", "auditor", "--role", "read").strip()
    reading = replace(server, management_key=secret)
    listed = json.loads(printed(reading, "keys", "ls", "--json"))
    assert {key["role"] for key in listed if key["name"] == "auditor"} == {"read"}
    for asked in (("credits", "ledger"), ("spend",), ("generations", "ls")):
        printed(reading, *asked)
    refused = run(reading, "keys", "disable", "auditor")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "needs a key of role management, not read. (permission_denied," in refused.stderr
    printed(server, "keys", "delete", "auditor")


def test_c91_the_operator_lists_and_stops_keys_of_another_workspace(server: LocalServer) -> None:
    printed(server, "workspaces", "create", "tenant")
    there = ("--workspace", "tenant")
    secret = printed(server, "keys", "create", "leaked", *there, "--role", "management").strip()
    tenant = replace(server, management_key=secret)
    printed(tenant, "keys", "ls")
    assert "leaked" in printed(server, "keys", "ls", *there)
    assert "leaked" not in printed(server, "keys", "ls")
    stopped = json.loads(printed(server, "keys", "disable", "leaked", *there, "--json"))
    assert stopped["disabled"] is True
    refused = run(tenant, "keys", "ls")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "(invalid_api_key, " in refused.stderr
    printed(server, "keys", "enable", "leaked", *there)
    printed(tenant, "keys", "ls")
    for asked in (("keys", "ls"), ("keys", "disable", "leaked")):
        assert "(permission_denied, " in run(tenant, *asked, "--workspace", "default").stderr


def test_a_key_that_has_expired_is_not_said_to_be_on(server: LocalServer) -> None:
    printed(server, "keys", "create", "bygone", "--expires", "2026-01-01T00:00:00Z")
    shown = printed(server, "keys", "show", "bygone").splitlines()[1]
    assert shown.split("\t")[2] == "expired"
    printed(server, "keys", "delete", "bygone")


@pytest.mark.parametrize("option", ["--rpm", "--tpm", "--concurrency", "--content-days"])
def test_a_setting_of_nothing_is_refused_not_ignored(server: LocalServer, option: str) -> None:
    refused = run(server, "keys", "create", "nothing", option, "0")
    assert refused.returncode == 1
    assert "(invalid_request, " in refused.stderr
    assert "\tnothing\t" not in printed(server, "keys", "ls")


def test_c60_a_key_prints_its_secret_alone_and_can_be_stopped(server: LocalServer) -> None:
    secret = printed(server, "keys", "create", "ci", "--limit", "day=5", "--model", "test/*")
    assert re.fullmatch(r"sk-tg-\S+\n", secret)
    shown = dict(
        zip(
            *(line.split("\t") for line in printed(server, "keys", "show", "ci").splitlines()),
            strict=True,
        )
    )
    assert (shown["name"], shown["state"], shown["limits"]) == ("ci", "on", "day 5")
    assert secret.strip() not in printed(server, "keys", "ls", "--json")

    assert "disabled" in printed(server, "keys", "disable", "ci")
    refused = run(server, "generations", "ls", TOLLGATE_KEY=secret.strip())
    assert refused.returncode == 1
    assert "(invalid_api_key, request " in refused.stderr


def test_c61_a_key_shows_its_rights_and_what_is_left(server: LocalServer) -> None:
    options = ("--limit", "day=5", "--limit", "total=9", "--model", "test/*", "--tpm", "900")
    labels = ("--label", "team=search", "--expires", "2027-01-01T00:00:00Z", "--content-days", "7")
    printed(server, "keys", "create", "rights", *options, *labels)
    head, row = printed(server, "keys", "show", "rights").splitlines()
    shown = dict(zip(head.split("\t"), row.split("\t"), strict=True))
    midnight = f"{datetime.now(UTC).date() + timedelta(days=1)}T00:00:00Z"
    assert shown["left"] == f"day 5 until {midnight}, total 9"
    assert (shown["models"], shown["labels"]) == ("test/*", "team=search")
    assert shown["rates"] == "60 requests/min, burst 120, 900 tokens/min"
    assert (shown["expires"], shown["content"]) == ("2027-01-01T00:00:00Z", "stored for 7 days")
    assert shown["responses"] == "as in the workspace"
    printed(server, "keys", "update", "rights", "--response-days", "30")
    assert "stored for 30 days" in printed(server, "keys", "show", "rights")

    lines = on_screen(server, "keys", "show", "rights", columns=60)
    assert "models          test/*" in lines
    assert "tier" not in {line.split()[0] for line in lines}
    printed(server, "keys", "delete", "rights")


def test_c61_a_tier_that_does_not_exist_is_refused(server: LocalServer) -> None:
    refused = run(server, "keys", "create", "tiered", "--tier", "nope")
    assert refused.returncode == 1
    assert "There is no tier 'nope'; the live catalog has " in refused.stderr
    assert "tiered" not in printed(server, "keys", "ls")


def test_c60_a_key_is_rotated_changed_and_deleted(server: LocalServer) -> None:
    old = printed(server, "keys", "create", "turning", "--rpm", "7").strip()
    rotated = run(server, "keys", "rotate", "turning", "--grace", "1h")
    new = rotated.stdout.strip()
    assert rotated.returncode == 0
    assert new != old
    assert "works for another 1h" in rotated.stderr
    listed = json.loads(printed(server, "keys", "ls", "--json"))
    [shown] = [row for row in listed if row["name"] == "turning"]
    assert (shown["requests_per_minute"], shown["old_secret"]["label"]) == (7, f"…{old[-4:]}")

    changes = ("--limit", "day=2.5", "--label", "team=search", "--content-days", "7")
    printed(server, "keys", "update", "turning", *changes)
    printed(server, "keys", "update", "turning", "--no", "content-days", "--rename", "turned")
    key = json.loads(printed(server, "keys", "show", "turned", "--json"), parse_float=Decimal)
    assert (key["limits"], key["labels"]) == ({"day": Decimal("2.5")}, {"team": "search"})
    assert key["content_days"] is None
    printed(server, "keys", "update", "turned", "--no", "day", "--no", "team")
    key = json.loads(printed(server, "keys", "show", "turned", "--json"))
    assert (key["limits"], key["labels"]) == ({}, {})

    printed(server, "keys", "disable", "turned")
    assert "\ton\t" in printed(server, "keys", "enable", "turned")
    assert "is deleted" in printed(server, "keys", "delete", "turned")
    assert "turned" not in printed(server, "keys", "ls")


def test_c69_content_is_printed_for_a_key_that_has_it_kept(server: LocalServer) -> None:
    secret = printed(server, "keys", "create", "kept", "--content-days", "1").strip()
    with openai.OpenAI(base_url=server.base_url, api_key=secret, max_retries=0) as client:
        reply = client.chat.completions.create(
            model="test/echo", messages=[{"role": "user", "content": "remember"}]
        )
    content = json.loads(printed(server, "generations", "content", reply.id))
    assert content["request"]["messages"] == [{"role": "user", "content": "remember"}]
    assert content["choices"][0][0]["text"] == reply.choices[0].message.content
    unkept = printed(server, "generations", "ls").splitlines()[-1].split("\t")[0]
    assert run(server, "generations", "content", unkept).returncode == 1


def test_an_inference_key_is_told_to_use_a_management_key(server: LocalServer) -> None:
    refused = run(server, "keys", "ls", TOLLGATE_KEY=server.key)
    assert refused.returncode == 1
    assert "Set TOLLGATE_KEY to a management key" in refused.stderr


def test_c60_the_address_of_the_last_use_is_printed_where_the_key_keeps_it(
    server: LocalServer,
) -> None:
    secret = printed(server, "keys", "create", "watched", "--keep-address", "last").strip()
    assert "127.0.0.1" not in printed(server, "keys", "show", "watched")
    with openai.OpenAI(base_url=server.base_url, api_key=secret, max_retries=0) as client:
        client.chat.completions.create(
            model="test/echo", messages=[{"role": "user", "content": "now"}]
        )
    assert " from 127.0.0.1" in printed(server, "keys", "show", "watched")
    printed(server, "keys", "update", "watched", "--no", "keep-address")
    assert "127.0.0.1" not in printed(server, "keys", "show", "watched")

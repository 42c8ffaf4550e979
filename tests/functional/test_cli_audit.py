"""`tollgate audit` against a running gateway, as an auditor uses it.

Keeps C90.
"""

import csv
import io
import json
from dataclasses import replace

from tests.functional.command_line import on_screen, printed, run, server
from tests.local_server import LocalServer

__all__ = ["server"]


def test_c90_an_auditor_reads_who_changed_what(server: LocalServer) -> None:
    printed(server, "keys", "create", "team-search", "--limit", "day=5")
    printed(server, "keys", "update", "team-search", "--limit", "day=10")
    printed(server, "keys", "update", "team-search", "--limit", "day=10")
    printed(server, "credits", "add", "25", "--id", "invoice-117", "--note", "November")
    printed(server, "workspaces", "create", "search", "--budget", "300")
    secret = printed(server, "keys", "create", "auditor", "--role", "read").strip()
    auditor = replace(server, management_key=secret)

    entries = json.loads(printed(auditor, "audit", "--json"))
    ours = [it for it in entries if it["actor_name"] == "local management"]
    assert [(it["action"], it["target_name"] or it["target"]) for it in ours[::-1]] == [
        ("key.create", "team-search"),
        ("key.change", "team-search"),
        ("credit.grant", "invoice-117"),
        ("workspace.create", "search"),
        ("key.create", "auditor"),
    ]
    assert {it["origin"] for it in ours} == {"127.0.0.1"}
    assert {it["actor"] for it in entries if it not in ours} == {"tollgate dev"}
    assert secret not in printed(auditor, "audit", "--json")

    changed = printed(auditor, "audit", "--target", "team-search").splitlines()
    assert len(changed) == 3
    assert "limits.day 5 → 10" in changed[1]
    rows = list(csv.DictReader(io.StringIO(printed(auditor, "audit", "--csv"))))
    assert [row["id"] for row in rows] == [it["id"] for it in entries]
    shown = on_screen(auditor, "audit", "--target", "invoice-117", columns=140)
    assert any("credit.grant" in line and "amount 25" in line for line in shown)
    last = printed(auditor, "audit", "--since", "1h", "--target", "invoice-117").splitlines()
    assert len(last) == 2
    assert printed(auditor, "audit", "--until", "1h") == printed(auditor, "audit", "--actor", "x")
    assert "(invalid_request, " in run(auditor, "audit", "--since", "yesterday").stderr


def test_c90_an_auditor_verifies_the_log_and_is_warned_of_one_without_seals(
    server: LocalServer,
) -> None:
    listed = printed(server, "audit", "--since", "1h", "--json")
    assert printed(server, "audit", "ls", "--since", "1h", "--json") == listed
    unsealed = run(server, "audit", "verify", "--csv")
    assert unsealed.returncode == 1
    assert "None of these days is sealed" in unsealed.stderr
    days = list(csv.DictReader(io.StringIO(unsealed.stdout)))
    assert len(days) == 30
    assert {day["hash"] for day in days} == {""}

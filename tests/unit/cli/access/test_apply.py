"""access.yaml against the API: planned, applied once, and repaired after a crash.

Keeps C90, C100.
"""

from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.cli.access.served import ServedApi, Vault, served_api, written
from tests.unit.web.test_permissions import OPERATORS
from tollgate.cli.access.application import TakenSecret, apply_changes
from tollgate.cli.access.checks import find_refusals
from tollgate.cli.access.differences import AccessPlan, compare_access
from tollgate.cli.access.export import export_access
from tollgate.cli.access.live import read_authors, read_live
from tollgate.cli.access.rendering import access_markdown, access_text

TODAY = date(2026, 11, 27)
FILE = """
version: 1
workspace: { id: acme }
teams:
  search: { limits: { month: 500 }, models: ["anthropic/*", "openai/*"] }
  ranking: { limits: { month: 300 } }
members:
  eva@acme.example: { role: admin }
  ana: { role: developer, team_id: ranking, limits: { day: 20 } }
keys:
  ci: { team_id: search, limits: { day: 5, month: 50 }, secret_name: tollgate/ci,
        expires_at: 2027-01-01T00:00:00Z, labels: { environment: ci } }
alerts:
  https://hooks.example.com/tollgate: { events: ["budget.*"], secret_name: tollgate/alerts }
"""


def plan_of(api: ServedApi, folder: Path, text: str, today: date = TODAY) -> AccessPlan:
    file = written(folder, text)
    return compare_access(file, read_live(api, alerts=file.alerts is not None), today)


def applied(api: ServedApi, folder: Path, text: str, vault: Vault) -> list[object]:
    file = written(folder, text)
    live = read_live(api, alerts=file.alerts is not None)
    plan = compare_access(file, live, TODAY)
    assert list(find_refusals(file, live, plan)) == []
    return list(apply_changes(api, file, live, plan, vault=vault))


def refusals(api: ServedApi, folder: Path, text: str) -> list[str]:
    file = written(folder, text)
    live = read_live(api, alerts=file.alerts is not None)
    return list(find_refusals(file, live, compare_access(file, live, TODAY)))


def test_c100_a_file_is_applied_once_and_audited_with_its_commit(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    api = replace(api, commit="5c1d0e7")
    planned = plan_of(api, tmp_path, FILE)
    assert api.sent == []
    done = applied(api, tmp_path, FILE, vault)
    assert done == list(planned.changes)
    assert [(it.kind.noun, it.name, it.id is None) for it in planned.changes] == [
        ("team", "search", False),
        ("team", "ranking", True),
        ("member", "eva@acme.example", True),
        ("member", "ana", False),
        ("key", "ci", True),
        ("alert", "https://hooks.example.com/tollgate", True),
    ]
    key = read_live(api, alerts=True).objects["keys"]["ci"]
    assert (key["limits"], key["team_id"]) == ({"day": 5, "month": 50}, "search")
    assert vault.values["tollgate/ci"].endswith(key["label"][-4:])
    entries = api.get("/audit", {"limit": 100})["data"]
    assert sum(entry["commit"] == "5c1d0e7" for entry in entries) == len(done)

    api.sent.clear()
    assert applied(api, tmp_path, FILE, vault) == []
    assert api.sent == []
    assert plan_of(api, tmp_path, FILE).changes == ()


@pytest.mark.parametrize("made", range(6))
def test_c100_an_interrupted_run_is_completed_by_the_next(tmp_path: Path, made: int) -> None:
    api, vault = served_api(), Vault()
    file = written(tmp_path, FILE)
    live = read_live(api, alerts=True)
    changes = apply_changes(api, file, live, compare_access(file, live, TODAY), vault=vault)
    for _ in range(made):
        next(changes)
    changes.close()
    applied(api, tmp_path, FILE, vault)
    assert plan_of(api, tmp_path, FILE).changes == ()
    assert set(vault.values) == {"tollgate/ci", "tollgate/alerts"}
    assert applied(api, tmp_path, FILE, vault) == []


def test_c100_a_key_whose_secret_was_lost_gets_a_new_one_unless_it_is_used(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    vault.fails = True
    with pytest.raises(ConnectionError):
        applied(api, tmp_path, FILE, vault)
    vault.fails = False
    applied(api, tmp_path, FILE, vault)
    secret = vault.values["tollgate/ci"]
    api.them.secrets["ci"] = secret
    replace(api, caller="ci").get("/key")
    # The program that uses the key has its secret, whatever became of the store.
    vault.values.clear()
    applied(api, tmp_path, FILE, vault)
    assert vault.values.keys() == {"tollgate/alerts"}


def test_c100_no_value_in_the_store_is_replaced(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    vault.values["tollgate/ci"] = "of another program"
    with pytest.raises(TakenSecret, match=r"The secret tollgate/ci has a value already"):
        applied(api, tmp_path, FILE, vault)
    assert (vault.values, api.sent) == ({"tollgate/ci": "of another program"}, [])


def test_c100_the_plan_states_dollars_losses_and_changes_made_elsewhere(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    api = replace(api, commit="5c1d0e7")
    applied(api, tmp_path, FILE, vault)
    console = replace(api, commit=None)
    key = read_live(api, alerts=False).objects["keys"]["ci"]
    console.patch(f"/keys/{key['id']}", {"limits": {"day": 80}})
    console.post("/keys", {"name": "made elsewhere"})
    text = (
        FILE.replace('models: ["anthropic/*", "openai/*"]', 'models: ["anthropic/*"]')
        .replace("month: 300", "month: 200")
        .replace("role: developer", "disabled: true, role: developer")
    )
    plan = plan_of(api, tmp_path, text)
    authors = read_authors(api, "acme")
    shown = access_text(plan, authors)
    by = f"admin on {api.get('/audit', {'limit': 1})['data'][0]['created_at'][:10]}"
    assert shown.splitlines()[:11] == [
        "workspace acme: 3 changed, 1 stopped",
        "- team    search   loses models openai/*; with key ci",
        "- team    ranking  limits month $300.00 → $200.00",
        "- member  ana      stops",
        f"- key     ci       limits day $80.00 → $5.00 (set outside the file by {by})",
        "",
        "limits of teams, month: $800.00 → $700.00 (-$100.00)",
        "limits of members, day: $20.00, 1 without a limit → no limit",
        "limits of keys, day: $80.00, 5 without a limit → $5.00, 5 without a limit (-$75.00)",
        "",
        "different from the file, and left unchanged:",
    ]
    assert "! key  made elsewhere  is not in the file" in shown
    assert "| limits of teams, month | $800.00 | $700.00 (-$100.00) |" in access_markdown(
        plan, authors
    )
    for secret in vault.values.values():
        assert secret not in shown + access_markdown(plan, authors)


def test_c100_the_console_overrides_a_setting_until_the_stated_day(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    text = FILE.replace(
        "secret_name: tollgate/ci", "secret_name: tollgate/ci, console: { limits: 2026-12-31 }"
    )
    applied(api, tmp_path, text, vault)
    key = read_live(api, alerts=False).objects["keys"]["ci"]
    api.patch(f"/keys/{key['id']}", {"limits": {"day": 80}})
    plan = plan_of(api, tmp_path, text)
    assert plan.changes == ()
    assert "limits day $5.00 → $80.00, until 2026-12-31" in access_text(plan, {})
    assert plan_of(api, tmp_path, text, date(2026, 12, 31)).changes == ()
    [late] = plan_of(api, tmp_path, text, date(2027, 1, 1)).changes
    assert late.body == {"limits": {"day": "5", "week": None, "month": "50", "total": None}}
    # Settings that the file does not state belong to the console.
    api.patch(f"/keys/{key['id']}", {"requests_per_minute": 600})
    assert plan_of(api, tmp_path, text).changes == ()


def test_c100_unlisted_keys_and_members_stop_only_if_the_file_says_so(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    applied(api, tmp_path, FILE, vault)
    api.post("/keys", {"name": "ana-laptop", "member_id": "ana"})
    text = "version: 1\nworkspace: { id: acme }\nkeys: {}\nmembers: {}\n"
    kept = plan_of(api, tmp_path, text)
    assert kept.changes == ()
    assert {it.name for it in kept.drift} >= {"ci", "ana", "eva@acme.example", "admin"}
    assert "ana-laptop" not in {it.name for it in kept.drift}
    stopped = plan_of(api, tmp_path, text + "unlisted: { keys: disable }\n")
    names = {it.name for it in stopped.changes}
    assert "ci" in names
    # The key of the caller and keys of members go on.
    assert not {"admin", "ana-laptop"} & names
    assert all(it.stops and it.unlisted for it in stopped.changes)


REFUSED = [
    ("members: { zoe: { team_id: nowhere } }", "The member zoe is in the team nowhere, which"),
    ("keys: { ci: { team_id: nowhere, secret_name: a } }", "The key ci belongs to the team nowhe"),
    ("keys: { ci: { member_id: zoe, secret_name: a } }", "The key ci belongs to the member zoe"),
    ("keys: { ci: {} }", "The key ci is new: name a secret of Secrets Manager"),
    ("keys: { a: { secret_name: s }, b: { secret_name: s } }", "The secret s is named 2 times"),
    ("keys: { admin: { disabled: true } }", "The file stops the key admin, which applies the file"),
    ("keys: { admin: { role: read } }", "The key admin has the role management, and a key's role"),
    ("members: { gone: {} }", "The member gone was removed, and its id is never used again."),
    ("teams: { old: {} }", "The team old was removed, and its id is never used again."),
    ("members: { boss: { role: viewer } }", "The file leaves the workspace without an owner."),
    ("members: { boss: { disabled: true } }", "The file leaves the workspace without an owner."),
    ("members: {}\nunlisted: { members: disable }", "The file leaves the workspace without an ow"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_c100_a_file_that_must_not_be_applied_is_refused_in_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    api = served_api()
    api.post("/teams", {"id": "old"})
    operator = replace(api, caller=f"{OPERATORS} management")
    operator.post("/workspaces/acme/members", {"id": "boss", "role": "owner"})
    api.delete("/teams/old")
    api.post("/members", {"id": "gone"})
    api.delete("/members/gone")
    api.sent.clear()
    [refused] = refusals(api, tmp_path, f"version: 1\nworkspace: {{ id: acme }}\n{text}\n")
    assert refused.startswith(sentence)
    assert api.sent == []


def test_c100_a_members_key_does_not_get_what_the_file_gives_to_its_name(tmp_path: Path) -> None:
    api = served_api()
    api.post("/keys", {"name": "deploy", "member_id": "ana", "limits": {"day": 1}})
    api.sent.clear()
    entry = "limits: { day: 500 }, secret_name: tollgate/deploy"
    text = f"version: 1\nworkspace: {{ id: acme }}\nkeys: {{ deploy: {{ {entry} }} }}\n"
    assert refusals(api, tmp_path, text) == [
        "The key deploy is a key of the member ana: state its member_id, or use another name."
    ]
    assert api.sent == []
    # A file that names the member means the member's key.
    assert refusals(api, tmp_path, text.replace("limits:", "member_id: ana, limits:")) == []


def test_c100_the_last_administrator_stays(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    applied(api, tmp_path, FILE, vault)
    text = FILE.replace("role: admin", "role: viewer")
    assert refusals(api, tmp_path, text) == [
        "The file leaves the workspace without an administrator."
    ]
    # A file that names another administrator is accepted.
    assert refusals(api, tmp_path, text.replace("role: developer", "role: admin")) == []


def test_c100_the_file_of_another_workspace_is_refused(tmp_path: Path) -> None:
    api = served_api()
    replace(api, caller=f"{OPERATORS} management").post("/workspaces", {"id": "other"})
    assert refusals(replace(api, caller="other management"), tmp_path, FILE) == [
        "The file is for the workspace acme, but the key belongs to the workspace other."
    ]


def test_c100_only_the_operator_changes_budgets_and_owners(tmp_path: Path) -> None:
    api, vault = served_api(f"{OPERATORS} management"), Vault()
    api.post("/workspaces", {"id": OPERATORS})
    text = "version: 1\nworkspace: { id: %s, budget: 300, pause_at_budget: true }\n"
    assert refusals(replace(api, caller="acme management"), tmp_path, text % "acme") == [
        "Only a key of the operator's workspace may change budget, pause_at_budget of a workspace."
    ]
    owned = text % OPERATORS + "members: { eva: { role: owner }, ana: { role: admin } }\n"
    plan = plan_of(api, tmp_path, owned)
    assert "budget, month: no limit → $300.00" in access_text(plan, {})
    assert len(applied(api, tmp_path, owned, vault)) == 3
    assert api.get("/workspace")["data"]["budget"] == 300
    # Whatever the order in the file, the new owner comes before the old one goes.
    swapped = owned.replace("admin", "new").replace("owner", "admin").replace("new", "owner")
    assert [it.name for it in plan_of(api, tmp_path, swapped).changes] == ["ana", "eva"]
    assert len(applied(api, tmp_path, swapped, vault)) == 2
    assert plan_of(api, tmp_path, swapped).changes == ()


def test_c100_a_key_that_only_reads_is_enough_for_a_plan(tmp_path: Path) -> None:
    text = FILE[: FILE.index("alerts:")]
    plan = plan_of(replace(served_api(), caller="acme read"), tmp_path, text)
    assert len(plan.changes) == 5


def test_c100_an_exported_file_changes_nothing(tmp_path: Path) -> None:
    api, vault = served_api(), Vault()
    applied(api, tmp_path, FILE, vault)
    api.post("/keys", {"name": "ana-laptop", "member_id": "ana"})
    live = read_live(api, alerts=True)
    exported = export_access(live)
    file = written(tmp_path, exported)
    plan = compare_access(file, live, TODAY)
    assert (plan.changes, plan.drift, list(find_refusals(file, live, plan))) == ((), (), [])
    assert "ana-laptop" not in exported
    assert "month: 500" in exported
    assert vault.values["tollgate/ci"][-4:] not in exported

"""The command line against a running gateway: what people see, what programs read.

Keeps C53, C64, C67, C68.
"""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import openai
import pytest

from tests.functional.command_line import on_screen, printed, run
from tests.local_server import LocalServer

COLUMNS = "id\tcreated_at\tstatus\tusd\tmodel\tkey\ttokens\tms\tprovider"


def test_a_list_is_tsv_in_a_pipe_csv_and_json_if_asked(server: LocalServer) -> None:
    head, *rows = printed(server, "generations", "ls").splitlines()
    assert head == COLUMNS
    assert len(rows) == 2
    assert all(
        row.split("\t")[4:6] == ["test/echo", "local inference"]
        and row.split("\t")[8] == "simulator"
        for row in rows
    )

    table = list(csv.DictReader(io.StringIO(printed(server, "generations", "ls", "--csv"))))
    told = json.loads(printed(server, "generations", "ls", "--json"))
    assert [row["id"] for row in table] == [record["id"] for record in told]
    assert set(table[0]) < set(told[0])
    for command in (("keys", "ls"), ("credits", "ledger"), ("workspaces", "ls")):
        rows = list(csv.DictReader(io.StringIO(printed(server, *command, "--csv"))))
        objects = json.loads(printed(server, *command, "--json"))
        assert [set(row) - set(it) for row, it in zip(rows, objects, strict=True)] == [
            set() for _ in objects
        ]
    assert printed(server, "generations", "ls", "--outcome", "error") == f"{COLUMNS}\n"


def test_a_bill_is_explained_line_by_line(server: LocalServer) -> None:
    newest = printed(server, "generations", "ls", "--limit", "1").splitlines()[1].split("\t")[0]
    head, details, *lines = printed(server, "generations", "show", newest).splitlines()

    assert re.fullmatch(r"\$\d+\.\d{5,}  test/echo via simulator", head)
    assert re.fullmatch(
        r"  key local inference  \S+Z  TTFT \d+\.\d s, \d+\.\d s  catalog [0-9a-f]{7}", details
    )
    pattern = r"  (fresh input|output) +[\d,]+ × \$\d+\.\d\d/M +(\d+\.\d{9})"
    costs = [Decimal(found[2]) for line in lines if (found := re.fullmatch(pattern, line))]
    assert len(costs) == 2
    record = json.loads(
        printed(server, "generations", "show", newest, "--json"), parse_float=Decimal
    )
    assert sum(costs) == record["total_cost"]


def test_c53_a_gateway_explains_where_a_request_would_go(server: LocalServer) -> None:
    simulate = ("--simulate", "529@simulator/echo:529")
    told = json.loads(printed(server, "explain", "test/fallback", "--json"))
    head, *lines = printed(server, "explain", "test/fallback", *simulate).splitlines()
    assert head.endswith(f"catalog {told['catalog_sha'][:7]}")
    assert lines[-1].endswith("serves")
    assert printed(server, "generations", "ls").count("\n") == 3
    unknown = run(server, "explain", "nothing")
    assert unknown.returncode == 1
    *_, hint = unknown.stderr.splitlines()
    assert hint == "GET /v1/models lists the names of models, routes and aliases."


def test_c53_traffic_is_replayed_from_a_gateway_or_from_what_it_exports(
    server: LocalServer, tmp_path: Path
) -> None:
    exported = printed(server, "generations", "export", "--since", "1d")
    told = json.loads(printed(server, "generations", "ls", "--json"))
    assert [json.loads(line)["id"] for line in exported.splitlines()] == [it["id"] for it in told]
    file = tmp_path / "traffic.jsonl"
    file.write_text(exported)
    asked = ("plan", "routing.yaml", "routing.yaml", "--json")
    of_file = printed(server, *asked, "--traffic", str(file))
    assert of_file == printed(server, *asked, "--since", "1d")
    # What only development serves, production refuses, before and after.
    assert json.loads(of_file)["replay"]["refused_by_both"] == len(told)


def test_spend_by_key_and_model_adds_up_to_the_month(server: LocalServer) -> None:
    head, row = printed(server, "spend", "--by", "key,model").splitlines()
    assert head == "key\tmodel\tusd\trequests\tprompt_tokens\tcompletion_tokens\tkey_id"
    key, model, usd, requests, *_ = row.split("\t")
    assert (key, model, requests) == ("local inference", "test/echo", "2")
    balance = json.loads(printed(server, "credits", "show", "--json"), parse_float=Decimal)
    assert Decimal(usd) == balance["total_usage"]


def test_c67_spend_of_some_days_shows_refunds_net_and_how_fresh_it_is(server: LocalServer) -> None:
    newest = json.loads(printed(server, "generations", "ls", "--limit", "1", "--json"))[0]["id"]
    with openai.OpenAI(base_url=server.base_url, api_key=server.management_key) as client:
        client.post("/credits/refunds", body={"generation_id": newest}, cast_to=object)
    today = datetime.now(UTC).date()
    asked = ("spend", "--by", "day", "--since", "1d")
    told = json.loads(printed(server, *asked, "--json"), parse_float=Decimal)
    assert (told["since"], told["until"]) == (
        f"{today - timedelta(days=1)}",
        f"{today + timedelta(days=1)}",
    )
    assert 0 < told["refunds"] < told["total"]
    assert told["net"] == told["total"] - told["refunds"]
    remarks = run(server, *asked).stderr
    assert f"refunds in these days ${told['refunds']:f}, net ${told['net']:f}\n" in remarks
    # `dev` closes the days before today as it starts, and may be at it still.
    assert re.search(rf"Counted live, at most a minute ago: .*{today}", remarks)
    before = json.loads(printed(server, *asked, "--until", f"{today}", "--json"))
    assert (before["data"], before["refunds"], before["net"]) == ([], 0, 0)
    before = run(server, "spend", "--month", "2026-01").stderr
    assert f"No usage before {datetime.now(UTC):%Y-%m-}" in before
    assert "Unknown" not in before


def test_c67_a_failed_generation_shows_the_model_that_was_asked_for(server: LocalServer) -> None:
    with (
        openai.OpenAI(base_url=server.base_url, api_key=server.key, max_retries=0) as client,
        pytest.raises(openai.APIError),
    ):
        client.chat.completions.create(
            model="smart", messages=[{"role": "user", "content": "no provider has a key here"}]
        )
    _, row = printed(server, "generations", "ls", "--model", "smart").splitlines()
    assert row.split("\t")[2] == "provider_auth"
    assert row.split("\t")[4] == "smart"
    served = printed(server, "generations", "ls", "--model", "test/echo").splitlines()[1:]
    assert served
    assert all(line.split("\t")[4] == "test/echo" for line in served)


def test_where_nothing_is_found_it_says_so(server: LocalServer) -> None:
    listed = run(server, "generations", "ls", "--until", "2026-01-01")
    assert (listed.returncode, listed.stderr) == (0, "Nothing found.\n")
    grouped = run(server, "spend", "--by", "tema")
    assert grouped.stderr.startswith("No key with usage has a label tema.")


def test_generations_are_listed_since_a_day_or_some_hours_ago(server: LocalServer) -> None:
    told = printed(server, "generations", "ls")
    for since in ("12h", "7d", "2026-01-01"):
        assert printed(server, "generations", "ls", "--since", since) == told


def test_c64_credit_is_added_once_a_name(server: LocalServer) -> None:
    before = printed(server, "credits", "show").splitlines()[1].split("\t")
    added = run(server, "credits", "add", "2.5", "--id", "invoice-7")
    again = run(server, "credits", "add", "2.5", "--id", "invoice-7")

    assert added.stdout == again.stdout
    assert "was granted before" in again.stderr
    assert Decimal(added.stdout.splitlines()[1].split("\t")[0]) == Decimal(before[0]) + Decimal(
        "2.5"
    )


def test_c67_showback_in_focus_has_the_total_of_spend(server: LocalServer) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(server, "spend", "--focus"))))
    spent = json.loads(printed(server, "spend", "--json"), parse_float=Decimal)
    assert sum(Decimal(row["BilledCost"]) for row in rows) == spent["net"]
    assert {row["x_FocusVersion"] for row in rows} == {"1.2"}


def test_c64_credit_is_refunded_and_adjusted(server: LocalServer) -> None:
    def available() -> Decimal:
        balance = json.loads(printed(server, "credits", "show", "--json"), parse_float=Decimal)
        return Decimal(balance["available"])

    before = available()
    oldest = json.loads(printed(server, "generations", "ls", "--json"), parse_float=Decimal)[-1]
    refunded = run(server, "credits", "refund", oldest["id"], "--note", "cut short")
    assert f"{oldest['id']} was refunded.\n" in refunded.stderr
    [head, newest, *_] = on_screen(server, "credits", "ledger", columns=100)
    assert head.split()[:5] == ["created_at", "type", "amount", "id", "note"]
    assert "cut short" in newest
    assert available() == before + oldest["total_cost"]
    again = run(server, "credits", "refund", oldest["id"])
    assert f"{oldest['id']} had already been refunded; nothing was added.\n" in again.stderr
    printed(server, "credits", "adjust", "-2.5", "--id", "correction-1")
    assert available() == before + oldest["total_cost"] - Decimal("2.5")


def test_c64_workspaces_are_made_funded_and_locked(server: LocalServer) -> None:
    options = ("--budget", "300", "--pause-at-budget", "--response-days", "30", "--file-days", "7")
    printed(server, "workspaces", "create", "search", *options)
    printed(server, "credits", "add", "5", "--id", "first", "--workspace", "search")
    balance = json.loads(printed(server, "credits", "show", "--workspace", "search", "--json"))
    assert balance["available"] == 5
    secret = printed(
        server, "keys", "create", "admin", "--workspace", "search", "--role", "management"
    ).strip()
    refused = run(server, "workspaces", "ls", TOLLGATE_KEY=secret)
    assert "(permission_denied, " in refused.stderr

    row = printed(server, "workspaces", "lock", "search").splitlines()[1].split("\t")
    assert row[:7] == ["search", "locked", "", "300", "yes", "30", "7"]
    none = ("--no", "budget", "--no", "response-days", "--no", "file-days")
    changes = (*none, "--no-pause-at-budget", "--admission", "covered")
    printed(server, "workspaces", "update", "search", *changes)
    printed(server, "workspaces", "unlock", "search")
    listed = [line.split("\t") for line in printed(server, "workspaces", "ls").splitlines()]
    assert ["search", "open", "covered", "", "no", "", ""] in [line[:7] for line in listed]
    assert run(server, "workspaces", "update", "search").returncode == 2


def test_c64_the_ledger_of_credit_lists_its_entries(server: LocalServer) -> None:
    printed(server, "credits", "add", "1.25", "--id", "listed", "--note", "a trial")
    head, *entries = printed(server, "credits", "ledger").splitlines()
    assert head == "created_at\ttype\tamount\tid\tgeneration_id\tnote\texpires_at"
    # Those of one second come in no order.
    made = [entry.split("\t") for entry in entries]
    assert [it[0] for it in made] == sorted((it[0] for it in made), reverse=True)
    assert ["grant", "1.25", "listed", "", "a trial", ""] in [it[1:] for it in made]


def test_a_person_sees_a_table(server: LocalServer) -> None:
    head, row, *_ = on_screen(server, "generations", "ls", "--outcome", "ok", columns=120)
    assert head.split() == COLUMNS.split()
    assert re.match(r"gen-\S{15}  \d\d-\d\d \d\d:\d\d:\d\d  ok +0\.0", row)
    assert row.rstrip().endswith("simulator")


def test_a_narrow_terminal_shows_fewer_columns_and_every_one_whole(server: LocalServer) -> None:
    head, row, *_, remark = on_screen(server, "generations", "ls", columns=60)
    assert head.split() == ["id", "created_at", "status", "usd"]
    assert "…" not in row
    assert remark == (
        "A wider terminal shows model, key, tokens, ms, provider too; --json shows all columns."
    )


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "said"),
    [
        (("keys", "ls"), {"TOLLGATE_KEY": ""}, 1, "No key is set.\nSet TOLLGATE_KEY"),
        (("keys", "ls"), {"TOLLGATE_URL": "http://127.0.0.1:9"}, 1, "start one: `tollgate dev`"),
        (("keys", "ls"), {"TOLLGATE_URL": "file:///etc/passwd"}, 1, "is not an http or https URL"),
        (("keys", "show", "nobody"), {}, 1, "`tollgate keys ls` shows all keys."),
        (("generations", "show", "gen-x"), {}, 1, "`tollgate generations ls` list"),
        (("spend", "--month", "11/2026"), {}, 2, "write '11/2026' as 2026-11"),
        (("spend", "--month", "2999-01"), {}, 2, "2999-01 has not begun"),
        (("spend", "--since", "2999-01-01"), {}, 2, "--since: 2999-01-01 is not before"),
        (("spend", "--since", "now"), {}, 2, "write 'now' as 2026-11-01 or 30d"),
        (("spend", "--until", "2026-11-01"), {}, 2, "Give --month, or --since"),
        (("keys", "create", "x", "--limit", "5"), {}, 2, "write '5' as name=value"),
        (("keys", "create", "x", "--label", "env=dev"), {}, 2, "one of team, member, environment"),
    ],
)
def test_every_error_ends_with_what_to_do_next(
    server: LocalServer, arguments: tuple[str, ...], variables: dict[str, str], code: int, said: str
) -> None:
    done = run(server, *arguments, **variables)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_c68_the_local_gateway_keeps_answers_too(server: LocalServer) -> None:
    with openai.OpenAI(base_url=server.base_url, api_key=server.key, max_retries=0) as client:
        replies = [
            client.chat.completions.with_raw_response.create(
                model="test/echo",
                messages=[{"role": "user", "content": "once"}],
                extra_headers={"Idempotency-Key": "local"},
            )
            for _ in range(2)
        ]
    first, again = replies
    assert again.headers["x-idempotent-replay"] == "true"
    assert first.content == again.content

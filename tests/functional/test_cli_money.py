"""Credit with a date, statements and an invoice, at a running gateway and as finance uses them.

Keeps C64, C67, C103.
"""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx

from tests.functional.command_line import on_screen, printed, run, server
from tests.local_server import LocalServer

__all__ = ["server"]

# A model of the simulator, as if it were somebody's who sends invoices.
ROUTING = """\
version: 1
providers:
  simulator: { codec: openai_chat, transport: http_sse, base_url: "https://llm.example/v1" }
models:
  test/echo:
    name: Echo
    context: 1000
    max_output: 1000
    endpoints:
      - provider: simulator
        upstream: echo
        price: { input: 1, output: 2, source: a test, checked: 2026-11-20 }
"""


def chat(server: LocalServer, key: str | None = None) -> None:
    body = {"model": "test/echo", "messages": [{"role": "user", "content": "hello"}]}
    reply = httpx.post(
        f"{server.base_url}/chat/completions",
        json=body,
        headers={"authorization": f"Bearer {key or server.key}"},
    )
    assert reply.status_code == 200, reply.text


def playground(server: LocalServer) -> str:
    """The secret of a playground, as the console opens one."""
    authorization = {"authorization": f"Bearer {server.management_key}"}
    opened = httpx.post(f"{server.base_url}/playground", headers=authorization)
    return str(opened.json()["key"])


def test_c64_a_month_is_closed_in_a_terminal(server: LocalServer, tmp_path: Path) -> None:
    chat(server)
    chat(server, playground(server))
    printed(server, "credits", "add", "50", "--id", "plan", "--expires", "2099-01-01")
    printed(server, "workspaces", "update", "default", "--credit-limit", "200")
    printed(server, "credits", "pay", "12.5", "--id", "transfer")
    shown = on_screen(server, "credits", "show", columns=140)
    assert any("$50 of plan ($50) expire at 2099-01-01T00:00:00Z." in line for line in shown)
    late = run(server, "credits", "add", "5", "--id", "late", "--expires", "2020-01-01")
    assert (late.returncode, "expires_at has passed" in late.stderr) == (1, True)

    secret = printed(server, "keys", "create", "finance", "--role", "read").strip()
    finance = replace(server, management_key=secret)
    month = f"{datetime.now(UTC):%Y-%m}"
    rows = list(csv.DictReader(io.StringIO(printed(finance, "statement", "--csv"))))
    amounts = [Decimal(row["amount"]) for row in rows]
    assert sum(amounts[:-1]) == amounts[-1]
    balance = json.loads(printed(finance, "credits", "show", "--json"), parse_float=Decimal)
    assert amounts[-1] == balance["available"] + balance["held"] - balance["credit_limit"]
    table = on_screen(finance, "statement", "--month", month, columns=140)
    balance_table = dict(line.split() for line in table[1 : table.index("")])
    names = ("opening_balance", "grants", "payments", "adjustments", "usage")
    moves = [Decimal(balance_table[name]) for name in names if name in balance_table]
    assert sum(moves) == Decimal(balance_table["closing_balance"]) == amounts[-1]
    lines = [line.split() for line in table if line.startswith("test/echo")]
    assert {line[2] for line in lines} == {"api", "playground"}
    assert {row["source"] for row in rows if row["type"] == "usage"} == {"api", "playground"}
    assert f"{month} is not closed: figures may still change." in table
    page = printed(finance, "statement", "--html")
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    file = tmp_path / "statement.pdf"
    saved = run(finance, "statement", "--pdf", str(file))
    assert (saved.stdout, saved.stderr) == ("", f"{file} was written.\n")
    assert file.read_bytes().startswith(b"%PDF-1.4")
    mixed = run(finance, "statement", "--csv", "--pdf", str(file))
    assert (mixed.returncode, "exclude each other" in mixed.stderr) == (2, True)
    nowhere = run(finance, "statement", "--pdf", str(tmp_path / "missing" / "it.pdf"))
    assert (nowhere.returncode, "cannot be written: No such file" in nowhere.stderr) == (1, True)
    wrong = run(finance, "statement", "--month", "2026-13")
    assert (wrong.returncode, "Write a month as 2026-11" in wrong.stderr) == (1, True)


def test_c67_an_invoice_is_compared_with_all_records(server: LocalServer, tmp_path: Path) -> None:
    chat(server)
    [row] = json.loads(printed(server, "spend", "--by", "day", "--json"), parse_float=Decimal)[
        "data"
    ]
    start = datetime.fromisoformat(row["day"]).replace(tzinfo=UTC).timestamp()
    routing, invoice = tmp_path / "routing.yaml", tmp_path / "invoice.json"
    routing.write_text(ROUTING)

    def invoiced(amount: Decimal) -> None:
        result = {
            "object": "organization.costs.result",
            "amount": {"value": float(amount), "currency": "usd"},
            "line_item": "echo-2026-11-01, output",
        }
        bucket = {"start_time": start, "end_time": start + 86_400, "results": [result]}
        invoice.write_text(json.dumps({"data": [bucket], "has_more": False}))

    asked = ("reconcile", str(invoice), "--provider", "simulator", "--routing", str(routing))
    invoiced(Decimal(row["usd"]))
    same = run(server, *asked, "--all", "--csv", "--tolerance-usd", "0")
    [found] = csv.DictReader(io.StringIO(same.stdout))
    assert (same.returncode, found["model"], found["difference"]) == (0, "test/echo", "0")
    invoiced(Decimal(row["usd"]) + 1)
    differs = run(server, *asked, "--csv")
    [found] = csv.DictReader(io.StringIO(differs.stdout))
    assert (differs.returncode, found["day"], found["difference"]) == (1, row["day"], "1")
    [kind, summary] = on_screen(server, *asked, "--tolerance-usd", "2", columns=100)
    assert kind.endswith("invoice.json is read as: OpenAI costs")
    assert "0 of 1 differ." in summary
    unknown = run(server, "reconcile", str(invoice), "--provider", "nobody")
    assert (unknown.returncode, "has no provider nobody" in unknown.stderr) == (1, True)
    broken = tmp_path / "broken.yaml"
    broken.write_text("version: x")
    refused = run(server, *asked[:-1], str(broken))
    assert refused.stderr.startswith(f"Error: {broken}:1:10: error[R004] version must be 1")
    # What `tollgate dev` serves, such as a provider on this machine.
    routing.write_text(ROUTING.replace("https://llm.example", "http://127.0.0.1:1234"))
    assert run(server, *asked, "--tolerance-usd", "2").returncode == 0
    assert run(server, "reconcile", "missing.json", "--provider", "openai").returncode == 2


SESSION = "arn:aws:sts::123456789012:assumed-role/tollgate-BedrockRole/"
CUR = (
    "line_item_usage_start_date,line_item_line_item_type,line_item_usage_type,"
    "line_item_currency_code,line_item_unblended_cost,line_item_iam_principal"
)


def test_c103_awss_bill_is_compared_team_by_team(server: LocalServer, tmp_path: Path) -> None:
    # A new workspace, because sums of the current day may be a minute old.
    printed(server, "workspaces", "create", "acme")
    printed(server, "credits", "add", "5", "--id", "acme", "--workspace", "acme")
    of_acme = ("keys", "create", "--workspace", "acme")
    admin = printed(server, *of_acme, "admin", "--role", "management").strip()
    acme = replace(server, management_key=admin)
    printed(acme, "teams", "create", "red")
    chat(server, printed(acme, "keys", "create", "of-red", "--team", "red").strip())
    chat(server, printed(acme, "keys", "create", "of-nobody").strip())
    spent = json.loads(printed(acme, "spend", "--by", "team", "--json"), parse_float=Decimal)
    usd = {row["team"]: Decimal(row["usd"]) for row in spent["data"]}
    routing, report = tmp_path / "routing.yaml", tmp_path / "report.csv"
    routing.write_text(ROUTING)

    def billed(red: Decimal) -> None:
        amounts = {f"{SESSION}red@acme": red, f"{SESSION}@acme": usd["-"], "user/ana": 3}
        start = f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z,Usage,echo-tokens,USD"
        lines = (f"{start},{amount},{principal}" for principal, amount in amounts.items())
        report.write_text("\n".join((CUR, *lines)))

    asked = ("reconcile", str(report), "--provider", "simulator", "--routing", str(routing))
    by_team = (*asked, "--by", "team", "--tolerance-usd", "0")
    billed(usd["red"])
    for reader in (acme, server):
        same = run(reader, *by_team, "--all", "--csv")
        rows = list(csv.DictReader(io.StringIO(same.stdout)))
        assert [
            (row["team"], row["workspace"], row["difference"])
            for row in rows
            if row["workspace"] != "default"
        ] == [
            ("no team", "acme", "0"),
            ("red", "acme", "0"),
            ("other principals", "", ""),
        ]
        assert rows[-1]["invoiced"] == "3"
    billed(usd["red"] + 1)
    differs = run(acme, *by_team)
    assert (differs.returncode, "1 of 2 teams differ." in differs.stderr) == (1, True)
    # A report whose sessions belong to no recorded team.
    report.write_text(report.read_text().replace("@acme", "@elsewhere"))
    assert "is Bedrock called in role sessions?" in run(acme, *by_team).stderr

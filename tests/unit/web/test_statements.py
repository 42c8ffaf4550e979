"""Statements by the api: as JSON, as CSV, and as a page that runs nothing.

Keeps C64.
"""

import csv
import io
import re
from decimal import Decimal
from html.parser import HTMLParser

import pypdfium2
import pytest
from msgspec.structs import replace

from tests.unit.web.routes import GENERATION_ID, WORKSPACE
from tests.unit.web.test_permissions import OPERATORS, Tenants, tenants
from tollgate.core.files.media_types import ASCII_PDF
from tollgate.core.money.statement import Statement, StatementLine, UsageGroup
from tollgate.web.money.statement_pdf import statement_pdf
from tollgate.web.money.statement_routes import statement_format

STATEMENT = Statement(
    workspace_id="acme",
    month="2026-11",
    since_s=0,
    until_s=1,
    made_s=1_795_264_201,
    final=True,
    opening_nano_usd=0,
    entries_nano_usd={},
    lines=(),
)
HOSTILE = "<script>alert('x')</script>&\"'"
PATH = "/v1/statement"


async def billed(**caller_labels: str) -> Tenants:
    """A workspace with a generation of a team that has a hostile name, and a refund of half."""
    them = await tenants()
    books = them.home.stores.books
    [(place, record)] = books.records.items()
    labels = {"team": HOSTILE, "member": "ana"}
    books.records[place] = replace(record, labels=labels, caller_labels=caller_labels)
    refund = {"generation_id": GENERATION_ID, "workspace_id": WORKSPACE, "amount": "0.00003"}
    operator = f"{OPERATORS} management"
    assert (await them.ask(operator, "POST", "/v1/credits/refunds", refund)).status == 200
    return them


class Page(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


async def test_c64_a_statement_has_usage_by_team_and_member_net_of_refunds() -> None:
    them = await billed()
    found = (await them.ask("acme read", "GET", PATH, None)).json["data"]
    assert (found["workspace_id"], found["status"]) == ("acme", "open")
    [line] = found["lines"]
    assert (line["team"], line["member"], line["requests"]) == (HOSTILE, "ana", 1)
    assert (line["cost"], line["refunded"], line["net"]) == (0.00006, 0.00003, 0.00003)
    moves = ("opening_balance", "grants", "payments", "refunds", "adjustments", "expiries")
    total = sum(Decimal(str(found[name])) for name in moves) - Decimal(str(found["usage"]))
    assert total == Decimal(str(found["closing_balance"]))
    shown = (await them.ask("acme read", "GET", "/v1/credits", None)).json["data"]
    assert found["closing_balance"] == shown["available"]


@pytest.mark.parametrize(("stated", "source"), [("playground", "playground"), ("mine", "api")])
async def test_c64_every_form_tells_usage_of_the_playground_apart(stated: str, source: str) -> None:
    them = await billed(source=stated)
    found = (await them.ask("acme read", "GET", PATH, None)).json["data"]
    [*_, refund] = sorted(
        (await them.ask("acme read", "GET", "/v1/credits/ledger", None)).json["data"],
        key=lambda entry: entry["type"],
    )
    assert refund["refunded"]["team"] == HOSTILE
    assert refund["refunded"]["source"] == source
    # The refund is on the line of the usage that it gives back.
    [line] = found["lines"]
    assert (line["source"], line["cost"], line["refunded"]) == (source, 0.00006, 0.00003)
    text = (await them.ask("acme read", "GET", f"{PATH}?format=csv", None)).body.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["source"] for row in rows if row["type"] == "usage"] == [source]
    page = (await them.ask("acme read", "GET", f"{PATH}?format=html", None)).body.decode()
    pdf = (await them.ask("acme read", "GET", f"{PATH}?format=pdf", None)).body
    for shown in ("".join(Page(page).texts), "".join(pages_of(pdf))):
        assert "Source" in shown
        assert shown.count(source) == 1


async def test_c64_the_amounts_of_a_csv_statement_add_up_to_its_last_row() -> None:
    them = await billed()
    reply = await them.ask("acme read", "GET", f"{PATH}?format=csv", None)
    assert reply.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(reply.body.decode())))
    assert [row["type"] for row in rows] == [
        "opening_balance",
        "grant",
        "usage",
        "closing_balance_open",
    ]
    amounts = [Decimal(row["amount"]) for row in rows]
    assert sum(amounts[:-1]) == amounts[-1]
    assert rows[2]["team"] == HOSTILE


async def test_c64_a_page_runs_no_script_and_shows_hostile_names_as_text() -> None:
    them = await billed()
    reply = await them.ask("acme read", "GET", f"{PATH}?format=html", None)
    assert reply.headers["content-type"].startswith("text/html")
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    text = reply.body.decode()
    page = Page(text)
    assert page.tags.isdisjoint({"script", "img", "link", "iframe", "a", "form"})
    assert not {name for name in page.attributes if name.startswith("on") or name == "style"}
    assert HOSTILE in "".join(page.texts)
    assert "<script" not in text
    assert "not closed" in text


async def test_c64_the_style_of_a_page_is_the_one_that_its_policy_names() -> None:
    import base64
    import hashlib

    them = await billed()
    reply = await them.ask("acme read", "GET", f"{PATH}?format=html", None)
    [style] = re.findall(r"<style>(.*?)</style>", reply.body.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in reply.headers["content-security-policy"]


async def test_c64_a_pdf_has_the_amounts_of_the_csv_and_the_same_bytes_each_time() -> None:
    them = await billed()
    replies = [await them.ask("acme read", "GET", f"{PATH}?format=pdf", None) for _ in range(2)]
    assert replies[0].headers["content-type"] == ASCII_PDF
    assert replies[0].body == replies[1].body
    assert replies[0].body.isascii()
    assert await statement_format(None, "application/pdf") == "pdf"
    [page] = pages_of(replies[0].body)
    reply = await them.ask("acme read", "GET", f"{PATH}?format=csv", None)
    rows = list(csv.DictReader(io.StringIO(reply.body.decode())))
    shown = {row["type"]: Decimal(row["amount"]) for row in rows}
    balance = dict(re.findall(r"^(\w[\w ]+?) (-?[\d,.]+)$", page, re.MULTILINE))
    assert {name: Decimal(text.replace(",", "")) for name, text in balance.items()} == {
        "Opening balance": shown["opening_balance"],
        "Credit granted": shown["grant"],
        "Refunds": Decimal("0.00003"),
        "Usage": Decimal("-0.00006"),
        "Balance so far": shown["closing_balance_open"],
    }
    lines = page.splitlines()
    [line] = [number for number, text in enumerate(lines) if text.startswith("<script>alert('x')")]
    assert lines[line].split()[-3:] == ["0.00006", "0.00003", "0.00003"]
    # In a font of fixed width, lines of one length have their figures below each other.
    drawn = re.findall(rb"^\((.*)\) '$", replies[0].body, re.MULTILINE)
    table = [text.replace(b"\\", b"") for text in drawn if re.match(rb"Team|<script|Total", text)]
    assert len(table) == 3
    assert len(set(map(len, table))) == 1
    assert "not closed" in page


def pages_of(content: bytes) -> list[str]:
    """The texts that a reader of PDF finds on each page, with their columns."""
    document = pypdfium2.PdfDocument(content)
    pages = [page.get_textpage().get_text_range() for page in document]
    return [page.replace("\r\n", "\n") for page in pages]


def test_c64_a_pdf_of_any_length_has_its_head_on_each_page_and_nothing_cut_off() -> None:
    long = "team-" + "0123456789" * 6
    lines = tuple(
        StatementLine(
            group=UsageGroup(team=f"{long}-{number}", member=None, model="m", provider="中\n)\\("),
            requests=number,
            failed=0,
            input_tokens=1,
            output_tokens=1,
            cost_nano_usd=number,
            refunded_nano_usd=0,
        )
        for number in range(1, 101)
    )
    content = statement_pdf(replace(STATEMENT, lines=lines))
    pages = pages_of(content)
    assert len(pages) > 5
    for number, page in enumerate(pages, start=1):
        assert page.count("Tokens in") == 1
        assert page.rstrip().endswith(f"{number} / {len(pages)}")
    text = "".join(pages)
    assert text.count(r"\u4e2d?)\(") == len(lines)
    assert "0.00000505" in text
    for piece in (long[:32], long[32:64]):
        assert text.count(piece) == len(lines)
    assert {int(rest) for rest in re.findall(rf"{long[64:]}-(\d+)", text)} == set(range(1, 101))
    drawn = re.findall(rb"^\((.*)\) '$", content, re.MULTILINE)
    assert max(len(line.replace(b"\\", b"")) for line in drawn) * 0.6 * size_of(content) <= 770


def test_c64_a_pdf_of_a_month_without_figures_can_still_be_read() -> None:
    days = tuple(f"2026-11-{day:02}" for day in range(1, 31))
    content = statement_pdf(replace(STATEMENT, missing_days=days, partial_days=days))
    [page] = pages_of(content)
    assert all(page.count(f"{day}.") + page.count(f"{day},") == 2 for day in days)
    assert size_of(content) == 9


def size_of(content: bytes) -> float:
    return float(re.findall(rb"/F ([\d.]+) Tf", content)[0])


def test_c64_a_pdf_of_a_month_without_usage_says_so() -> None:
    [page] = pages_of(statement_pdf(STATEMENT))
    assert "No usage." in page
    assert "Closing balance" in page


@pytest.mark.parametrize("month", ["2026-13", "next", "2999-01", ""])
async def test_c64_a_month_that_is_none_or_to_come_is_400_and_named(month: str) -> None:
    them = await tenants()
    reply = await them.ask("acme read", "GET", f"{PATH}?month={month or '%20'}", None)
    assert (reply.status, reply.error["param"]) == (400, "month")


async def test_c64_the_operator_reads_the_statement_of_any_workspace() -> None:
    them = await billed()
    path = "/v1/workspaces/acme/statement"
    found = (await them.ask(f"{OPERATORS} read", "GET", path, None)).json["data"]
    assert (found["workspace_id"], len(found["lines"])) == ("acme", 1)
    missing = await them.ask(f"{OPERATORS} read", "GET", "/v1/workspaces/missing/statement", None)
    assert missing.status == 404

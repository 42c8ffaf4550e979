"""Credit by the api: what the operator enters, into which workspace, and what is refused.

Keeps C64.
"""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.unit.web.routes import GENERATION_ID, WORKSPACE
from tests.unit.web.test_permissions import OPERATORS, tenants
from tollgate.core.money.amounts import nano_usd


@pytest.mark.parametrize("named", ["acme", None])
async def test_c64_the_operator_credits_the_workspace_it_names_or_its_own(
    named: str | None,
) -> None:
    them = await tenants()
    for name, amount in (("grants", "3"), ("adjustments", "-1")):
        body = {"id": name, "amount": amount, "workspace_id": named}
        await them.ask(f"{OPERATORS} management", "POST", f"/v1/credits/{name}", body)
    books = them.home.stores.books
    amounts = {
        workspace: [entries[name].amount_nano_usd for name in ("grants", "adjustments")]
        for workspace, entries in books.entries.items()
        if "grants" in entries
    }
    assert amounts == {named or OPERATORS: [nano_usd(Decimal(3)), nano_usd(Decimal(-1))]}


async def test_c64_a_refund_finds_no_generation_outside_the_workspace_it_names() -> None:
    them = await tenants()
    before = await them.state()
    body = {"generation_id": GENERATION_ID}
    reply = await them.ask(f"{OPERATORS} management", "POST", "/v1/credits/refunds", body)
    assert (reply.status, reply.error["param"]) == (404, "generation_id")
    assert await them.state() == before


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("refunds", {}, 200),
        ("refunds", {"amount": "0.00006"}, 200),
        ("refunds", {"amount": "0.000060001"}, 400),
        ("adjustments", {"id": "a", "amount": 0}, 400),
    ],
)
async def test_c64_a_refund_is_at_most_the_cost_and_an_adjustment_is_not_zero(
    path: str, fields: dict[str, object], status: int
) -> None:
    them = await tenants()
    before = await them.state()
    body: dict[str, object] = {"workspace_id": WORKSPACE, **fields}
    if path == "refunds":
        body["generation_id"] = GENERATION_ID
    reply = await them.ask(f"{OPERATORS} management", "POST", f"/v1/credits/{path}", body)
    assert reply.status == status
    if status == 400:
        assert reply.error["param"] == "amount"
        assert await them.state() == before


@pytest.mark.parametrize("name", ["grants", "adjustments", "refunds"])
async def test_c64_credit_is_not_entered_into_a_workspace_that_does_not_exist(name: str) -> None:
    them = await tenants()
    before = await them.state()
    body: dict[str, object] = {"workspace_id": "missing", "id": "a", "amount": 1}
    if name == "refunds":
        body = {"workspace_id": "missing", "generation_id": GENERATION_ID}
    reply = await them.ask(f"{OPERATORS} management", "POST", f"/v1/credits/{name}", body)
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert await them.state() == before


async def test_c64_no_other_entry_takes_the_id_of_a_refund() -> None:
    them = await tenants()
    for name in ("grants", "adjustments"):
        body = {"id": f"refund:{GENERATION_ID}", "amount": 1, "workspace_id": WORKSPACE}
        reply = await them.ask(f"{OPERATORS} management", "POST", f"/v1/credits/{name}", body)
        assert (reply.status, reply.error["param"]) == (400, "id")
    body = {"generation_id": GENERATION_ID, "workspace_id": WORKSPACE}
    reply = await them.ask(f"{OPERATORS} management", "POST", "/v1/credits/refunds", body)
    assert (reply.status, reply.json["granted"]) == (200, True)


async def test_c64_a_refund_is_on_the_bill_of_its_generation_and_restores_no_limit() -> None:
    them = await tenants()

    async def generation() -> Decimal:
        path = f"/v1/generation?id={GENERATION_ID}"
        reply = await them.ask("acme management", "GET", path, None)
        return Decimal(str(reply.json["data"]["refunded"]))

    def spent() -> object:
        return [key.spent for key in them.home.stores.books.keys.values()]

    before = spent()
    assert await generation() == 0
    body = {"generation_id": GENERATION_ID, "workspace_id": WORKSPACE, "amount": "0.00005"}
    await them.ask(f"{OPERATORS} management", "POST", "/v1/credits/refunds", body)
    assert await generation() == Decimal("0.00005")
    assert spent() == before


async def test_c64_a_generation_that_cost_nothing_is_not_refunded() -> None:
    them = await tenants()
    books = them.home.stores.books
    [(place, record)] = books.records.items()
    books.records[place] = replace(record, cost_nano_usd=0)
    body = {"generation_id": GENERATION_ID, "workspace_id": WORKSPACE}
    reply = await them.ask(f"{OPERATORS} management", "POST", "/v1/credits/refunds", body)
    assert (reply.status, reply.error["param"]) == (400, "amount")
    assert "cost nothing" in reply.error["message"]


async def test_c64_a_grant_may_expire_and_says_when() -> None:
    them = await tenants()
    clock = them.home.stores.clock
    ends = datetime.fromtimestamp(int(clock.now_s()) + 86_400, UTC).isoformat()
    grant = {"id": "plan", "amount": 2, "workspace_id": "acme", "expires_at": ends}
    path = "/v1/credits/grants"
    first = await them.ask(f"{OPERATORS} management", "POST", path, grant)
    [shown] = first.json["data"]["expiring"]
    assert (shown["id"], shown["amount"], shown["left"]) == ("plan", 2.0, 2.0)
    assert datetime.fromisoformat(shown["expires_at"]) == datetime.fromisoformat(ends)
    listed = (await them.ask("acme read", "GET", "/v1/credits/ledger", None)).json["data"][0]
    assert (listed["type"], listed["expires_at"]) == ("grant", shown["expires_at"])
    other = await them.ask(
        f"{OPERATORS} management", "POST", path, {**grant, "expires_at": "2099-01-01T00:00:00Z"}
    )
    assert (other.status, other.error["code"]) == (422, "idempotency_conflict")
    await clock.sleep(86_400)
    again = await them.ask(f"{OPERATORS} management", "POST", path, grant)
    assert (again.status, again.json["granted"]) == (200, False)
    late = await them.ask(f"{OPERATORS} management", "POST", path, {**grant, "id": "late"})
    assert (late.status, late.error["param"]) == (400, "expires_at")


async def test_c64_a_workspace_that_is_invoiced_shows_what_it_owes_and_pays_it() -> None:
    them = await tenants()
    operator = f"{OPERATORS} management"
    path = "/v1/workspaces/acme"
    for limit, expected in ((50, 50.0), ("50", 50.0), (None, 0.0), (7, 7.0)):
        reply = await them.ask(operator, "PATCH", path, {"credit_limit": limit})
        assert (reply.status, reply.json["data"]["credit_limit"]) == (200, expected)
    untouched = await them.ask(operator, "PATCH", path, {"budget": 5})
    assert untouched.json["data"]["credit_limit"] == 7.0
    wrong = await them.ask(operator, "PATCH", path, {"credit_limit": -1})
    assert (wrong.status, wrong.error["param"]) == (400, "credit_limit")
    books = them.home.stores.books
    wallet = books.wallets["acme"]
    before = (await them.ask("acme read", "GET", "/v1/credits", None)).json["data"]
    assert (before["credit_limit"], before["owed"]) == (7.0, 0.0)
    spent = wallet.available - nano_usd(Decimal(3))
    wallet.available -= spent
    wallet.spent += spent
    owed = (await them.ask("acme read", "GET", "/v1/credits", None)).json["data"]
    assert (owed["owed"], owed["available"]) == (4.0, 3.0)
    payment = {"id": "transfer-1", "amount": 4, "workspace_id": "acme"}
    paid = await them.ask(operator, "POST", "/v1/credits/payments", payment)
    assert (paid.json["granted"], paid.json["data"]["owed"]) == (True, 0.0)
    listed = (await them.ask("acme read", "GET", "/v1/credits/ledger", None)).json["data"]
    assert [entry["type"] for entry in listed[:2]] == ["payment", "credit_line"]


@pytest.mark.parametrize("prefix", ["refund:", "expiry:", "credit_line:"])
async def test_c64_ids_that_the_gateway_makes_are_not_taken(prefix: str) -> None:
    them = await tenants()
    body = {"id": f"{prefix}a", "amount": 1}
    for name in ("grants", "payments", "adjustments"):
        reply = await them.ask(f"{OPERATORS} management", "POST", f"/v1/credits/{name}", body)
        assert (reply.status, reply.error["param"]) == (400, "id")

"""Credit by the api: what the operator enters, into which workspace, and what is refused.

Keeps C64.
"""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.unit.web.routes import GENERATION_ID, WORKSPACE
from tests.unit.web.test_permissions import OPERATORS, tenants
from tollgate.core.money import nano_usd


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


async def test_c64_a_generation_that_cost_nothing_is_not_refunded() -> None:
    them = await tenants()
    books = them.home.stores.books
    [(place, record)] = books.records.items()
    books.records[place] = replace(record, cost_nano_usd=0)
    body = {"generation_id": GENERATION_ID, "workspace_id": WORKSPACE}
    reply = await them.ask(f"{OPERATORS} management", "POST", "/v1/credits/refunds", body)
    assert (reply.status, reply.error["param"]) == (400, "amount")
    assert "cost nothing" in reply.error["message"]

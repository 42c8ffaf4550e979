"""`tollgate credits`: the credit of a workspace in a running gateway."""

from typing import Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.tables import OutputStyle, exact, show

_BALANCE: Final = ("available", "held", "total_usage", "total_credits")
_ENTRIES: Final = ("created_at", "type", "amount", "id", "generation_id", "note")


@click.group("credits")
def credit() -> None:
    """Show and add credit of the workspace."""


@credit.command("show")
@calls_gateway
def show_credits(api: Api, style: OutputStyle) -> None:
    """Show granted, spent, held and available credit."""
    balance = api.get("/credits")["data"]
    show([{name: exact(balance[name]) for name in _BALANCE}], _BALANCE, style, data=balance)


@credit.command("add")
@click.argument("amount", metavar="USD")
@click.option(
    "--id",
    "grant_id",
    required=True,
    help="Name of the grant, such as an invoice's: a repeated name adds nothing.",
)
@click.option("--note", default="", help="Reason for the grant.")
@calls_gateway
def add_credits(api: Api, style: OutputStyle, *, amount: str, grant_id: str, note: str) -> None:
    """Add credit, once for each --id."""
    reply = api.post("/credits/grants", {"id": grant_id, "amount": amount, "note": note})
    if not reply["granted"]:
        click.echo(f"{grant_id} was granted before; nothing was added.", err=True)
    balance = reply["data"]
    show([{name: exact(balance[name]) for name in _BALANCE}], _BALANCE, style, data=reply)


@credit.command("ledger")
@calls_gateway
def show_ledger(api: Api, style: OutputStyle) -> None:
    """List every grant, refund and adjustment, latest first."""
    found = list(api.pages("/credits/ledger", {}, "cursor"))
    rows = [
        {name: exact(entry[name]) if name == "amount" else entry[name] or "" for name in _ENTRIES}
        for entry in found
    ]
    show(rows, _ENTRIES, style, data=found)

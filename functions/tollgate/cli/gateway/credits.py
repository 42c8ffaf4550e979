"""`tollgate credits`: the credit of a workspace in a running gateway."""

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import as_moment, workspace_id_option
from tollgate.cli.tables import OutputStyle, exact, show
from tollgate.core.dotted_names import DottedName

_ENTRY_SHAPE: Final = DottedName[type[Any]]("tollgate.web.money.credit_routes:EntryObject")
_BALANCE: Final = ("available", "held", "total_usage", "total_credits")
_OWED: Final = ("credit_limit", "owed")
# Scripts select columns by position, so a new column must be the last.
_ENTRIES: Final = ("created_at", "type", "amount", "id", "generation_id", "note", "expires_at")
# A narrow terminal drops the last columns. The generation comes late, because a refund's id has it.
_ON_SCREEN: Final = ("created_at", "type", "amount", "id", "note", "generation_id", "expires_at")
_Command = TypeVar("_Command", bound=Callable[..., object])

_note = click.option("--note", default="", help="Reason, which the ledger shows.")


def _entry_id(described: str) -> Callable[[_Command], _Command]:
    """Return the option `--id`, which makes an entry idempotent."""
    return click.option("--id", "entry_id", required=True, help=described)


@click.group("credits")
def credit() -> None:
    """Show and change the credit of a workspace; changes need the operator's management key."""


@credit.command("show", epilog="Example: tollgate credits show --workspace search")
@workspace_id_option
@calls_gateway
def show_credits(api: Api, style: OutputStyle, workspace_id: str | None) -> None:
    """Show granted, spent, held, available, owed and expiring credit."""
    path = f"/workspaces/{workspace_id}/credits" if workspace_id else "/credits"
    balance = api.get(path)["data"]
    _show_balance(balance, style, data=balance)
    if style == "auto":
        for lot in balance["expiring"]:
            click.echo(
                f"${exact(lot['left'])} of {lot['id']} (${exact(lot['amount'])}) "
                f"expire at {lot['expires_at']}.",
                err=True,
            )


@credit.command(
    "add", epilog="Example: tollgate credits add 25 --id invoice-2026-117 --note November"
)
@click.argument("amount", metavar="USD")
@_entry_id("Id of the grant, such as an invoice number; a repeated id adds nothing.")
@click.option(
    "--expires",
    "expires_at",
    metavar="MOMENT",
    help="Day or time at which unused credit expires, such as 2027-01-01; it is spent first.",
)
@_note
@workspace_id_option
@calls_gateway
def add_credits(
    api: Api, style: OutputStyle, entry_id: str, expires_at: str | None, **body: str | None
) -> None:
    """Add credit; repeating a command with the same --id has no effect."""
    if expires_at is not None:
        body["expires_at"] = as_moment(expires_at)
    reply = api.post("/credits/grants", {"id": entry_id, **body})
    _show_entered(reply, style, f"{entry_id} was granted before; nothing was added.")


@credit.command(
    "pay", epilog="Example: tollgate credits pay 812.40 --id transfer-889 --workspace search"
)
@click.argument("amount", metavar="USD")
@_entry_id("Id of the payment, such as a transfer number; a repeated id adds nothing.")
@_note
@workspace_id_option
@calls_gateway
def book_payment(api: Api, style: OutputStyle, entry_id: str, **body: str | None) -> None:
    """Enter a payment, once for each --id; a payment first reduces the debt."""
    reply = api.post("/credits/payments", {"id": entry_id, **body})
    _show_entered(reply, style, f"{entry_id} was entered before; nothing was added.")


# A negative amount begins with a dash, like an option.
@credit.command(
    "adjust",
    context_settings={"ignore_unknown_options": True},
    epilog="Example: tollgate credits adjust -4.5 --id correction-12",
)
@click.argument("amount", metavar="USD")
@_entry_id("Id of the adjustment; a repeated id changes nothing.")
@_note
@workspace_id_option
@calls_gateway
def adjust_credits(api: Api, style: OutputStyle, entry_id: str, **body: str | None) -> None:
    """Add USD to the credit, or subtract a negative USD, once for each --id."""
    reply = api.post("/credits/adjustments", {"id": entry_id, **body})
    _show_entered(reply, style, f"{entry_id} was entered before; nothing was changed.")


@credit.command(
    "refund", epilog='Example: tollgate credits refund gen-5g0DOGidSaW4fTg --note "cut short"'
)
@click.argument("generation_id", metavar="GENERATION")
@click.option("--amount", metavar="USD", help="Amount to refund; the whole cost by default.")
@_note
@workspace_id_option
@calls_gateway
def refund_generation(api: Api, style: OutputStyle, **body: str | None) -> None:
    """Refund the cost of a generation, once for each GENERATION."""
    reply = api.post("/credits/refunds", body)
    refunded = body["generation_id"]
    _show_entered(reply, style, f"{refunded} had already been refunded; nothing was added.")
    if reply["granted"]:
        click.echo(f"{refunded} was refunded.", err=True)


def _show_entered(reply: Any, style: OutputStyle, repeated: str) -> None:
    """Show the balance after an entry, and `repeated` if the entry existed before."""
    if not reply["granted"]:
        click.echo(repeated, err=True)
    _show_balance(reply["data"], style, data=reply)


def _show_balance(balance: Any, style: OutputStyle, *, data: object) -> None:
    """Show a balance, with the debt only for a workspace with a credit limit."""
    columns = (*_BALANCE, *_OWED) if balance["credit_limit"] or style == "csv" else _BALANCE
    show([{name: exact(balance[name]) for name in columns}], columns, style, data=data)


@credit.command("ledger", epilog="Example: tollgate credits ledger --csv > ledger.csv")
@calls_gateway
def show_ledger(api: Api, style: OutputStyle) -> None:
    """List every grant, payment, refund, adjustment, expiry and credit line, latest first."""
    found = list(api.pages("/credits/ledger", {}, "cursor"))
    rows = [
        {name: exact(entry[name]) if name == "amount" else entry[name] or "" for name in _ENTRIES}
        # A table omits the year of timestamps; expiries at midnight are shown as dates with a year.
        | {"expires_at": (entry["expires_at"] or "").removesuffix("T00:00:00Z")}
        for entry in found
    ]
    columns = _ON_SCREEN if style == "auto" and sys.stdout.isatty() else _ENTRIES
    show(rows, columns, style, data=found, shape=_ENTRY_SHAPE)

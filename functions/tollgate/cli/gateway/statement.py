"""`tollgate statement`: a workspace's monthly statement, as a table, PDF, HTML, CSV or JSON."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import month_option, workspace_id_option
from tollgate.cli.tables import OutputStyle, as_json, exact, show

_MOVES: Final = (
    "opening_balance",
    "grants",
    "payments",
    "refunds",
    "adjustments",
    "expiries",
    "usage",
    "closing_balance",
)
# Fields that are shown even if their value is 0.
_ALWAYS: Final = ("opening_balance", "usage", "closing_balance")
_GROUPS: Final = ("team", "member", "model", "provider_name", "source")
# A column is left out if all lines have its usual value.
_USUAL: Final = {"source": "api"}
_AMOUNTS: Final = ("net", "cost", "refunded")
_COUNTS: Final = ("requests", "failed", "prompt_tokens", "completion_tokens")


@click.command(epilog="Example: tollgate statement --month last --pdf november.pdf")
@month_option
@workspace_id_option
@click.option("--html", is_flag=True, help="Print an HTML page.")
@click.option(
    "--pdf",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a PDF to a file.",
)
@calls_gateway
def statement(
    api: Api,
    style: OutputStyle,
    *,
    month: str | None,
    workspace_id: str | None,
    html: bool,
    pdf: Path | None,
) -> None:
    """Show balances, entries and usage for a month, net of refunds; CSV ends with the sum."""
    path = f"/workspaces/{workspace_id}/statement" if workspace_id else "/statement"
    if pdf is not None:
        if html or style in ("csv", "json"):
            raise click.UsageError("--pdf, --html, --csv and --json exclude each other.")
        content = api.text(path, {"month": month, "format": "pdf"}).encode("ascii")
        try:
            pdf.write_bytes(content)
        except OSError as failed:
            raise click.ClickException(f"{pdf} cannot be written: {failed.strerror}.") from failed
        click.echo(f"{pdf} was written.", err=True)
        return
    if html or style == "csv":
        text = api.text(path, {"month": month, "format": "html" if html else "csv"})
        # The text is written as bytes, because text output would replace the newlines of CSV with
        # the platform's newlines.
        click.echo(text.encode(), nl=False)
        return
    found = api.get(path, {"month": month})["data"]
    if style == "json":
        click.echo(as_json(found))
        return
    balance = ({"": name, "usd": exact(amount)} for name, amount in _balance(found))
    # All digits, also on a terminal: the lines add up to the balances exactly.
    show(balance, ("", "usd"), style)
    click.echo()
    columns = (*(name for name in _GROUPS if _is_told_apart(found, name)), *_AMOUNTS, *_COUNTS)
    show([_line(line) for line in found["lines"]], columns, style)
    for remark in _remarks(found):
        click.echo(remark, err=True)


def _balance(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in _MOVES:
        if found[name] or name in _ALWAYS:
            yield name, -found[name] if name == "usage" else found[name]
    if found["credit_limit"]:
        yield "owed", max(0, -found["closing_balance"])
        yield "credit_limit", found["credit_limit"]


def _is_told_apart(found: Mapping[str, Any], name: str) -> bool:
    """Return whether the table needs a column, because a line has an unusual value or there are no
    lines.
    """
    usual = (None, _USUAL.get(name))
    return not found["lines"] or any(line[name] not in usual for line in found["lines"])


def _line(line: Mapping[str, Any]) -> dict[str, str]:
    return {
        **{name: line[name] or "-" for name in _GROUPS},
        **{name: exact(line[name]) for name in _AMOUNTS},
        **{name: str(line[name]) for name in _COUNTS},
    }


def _remarks(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on figures that are not final or not complete."""
    if found["status"] == "open":
        yield f"{found['month']} is not closed: figures may still change."
    if found["partial_days"]:
        yield f"Some records are not counted on {', '.join(found['partial_days'])}."
    if found["missing_days"]:
        yield f"No figures are available for {', '.join(found['missing_days'])}."
    if found["summed"]:
        yield f"Summed over {', '.join(found['summed'])}, because there are too many lines."

"""Journal of the local server, which prints one line for each generation."""

import logging
from typing import Final

import click

from tollgate.core.money.amounts import usd_text
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import PIECES, Usage

_LOGGER: Final = logging.getLogger("tollgate.dev")


class TerminalJournal:
    """A journal that prints generations to the terminal."""

    def settled(self, record: GenerationRecord) -> None:
        """Print a generation's outcome, cost, usage, duration and attempts."""
        outcome = f"{record.outcome:<9}"
        colour = "green" if record.outcome == "ok" else "yellow"
        tried = " → ".join(
            f"{attempt.model} {attempt.error or 'ok'}" for attempt in record.attempts
        )
        click.echo(
            f"{click.style(outcome, fg=colour)} gen-{record.id}  "
            f"${usd_text(record.cost_nano_usd)}  {_size(record.usage)}  "
            f"{record.duration_ms} ms  {tried}"
        )
        for attempt in record.attempts:
            if attempt.provider_words:
                status = f"{attempt.status} " if attempt.status else ""
                click.echo(f"  {attempt.provider} answered {status}{attempt.provider_words}")

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """Print the id of a generation whose record could not be stored, and the failure."""
        reason = str(failure) or type(failure).__name__
        click.secho(f"unsettled gen-{record.id}: {reason}", fg="red")

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """Print the id of an endpoint whose cooldown begins."""
        click.secho(f"cooldown  {endpoint_id}", fg="yellow")

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """Print why a catalog is not served, and which catalog is served instead."""
        click.secho(f"rejected  {what}: {failure}; {serving[:12]} is served", fg="red")

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Log the traceback of a defect."""
        _LOGGER.error("defect in request %s", request_id, exc_info=error)


def _size(usage: Usage) -> str:
    units = [
        f"{count} {unit.replace('_', ' ')}" for unit in PIECES if (count := getattr(usage, unit))
    ]
    if not usage.total_tokens and units:
        return ", ".join(units)
    return ", ".join([f"{usage.input_tokens}+{usage.output_tokens or 0} tokens", *units])

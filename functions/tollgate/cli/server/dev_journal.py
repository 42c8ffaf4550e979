"""What the local server prints of each generation: one line a person can read."""

import logging
from typing import Final

import click

from tollgate.core.generation import GenerationRecord
from tollgate.core.money import usd_text

_LOGGER: Final = logging.getLogger("tollgate.dev")


class TerminalJournal:
    """Writes generations to the terminal."""

    def settled(self, record: GenerationRecord) -> None:
        """Who served it, what it cost, how long it took."""
        outcome = f"{record.outcome:<9}"
        colour = "green" if record.outcome == "ok" else "yellow"
        tried = " → ".join(
            f"{attempt.model} {attempt.error or 'ok'}" for attempt in record.attempts
        )
        tokens = f"{record.usage.input_tokens}+{record.usage.output_tokens or 0} tokens"
        click.echo(
            f"{click.style(outcome, fg=colour)} gen-{record.id}  "
            f"${usd_text(record.cost_nano_usd)}  {tokens}  {record.duration_ms} ms  {tried}"
        )

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """The generation whose record could not be kept."""
        reason = str(failure) or type(failure).__name__
        click.secho(f"unsettled gen-{record.id}: {reason}", fg="red")

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """The endpoint that is left alone for a while."""
        click.secho(f"resting   {endpoint_id}", fg="yellow")

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """What stands in the way of a catalog."""
        click.secho(f"kept back {what}: {failure}; {serving[:12]} serves", fg="red")

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """The traceback of something of ours that broke."""
        _LOGGER.error("defect in request %s", request_id, exc_info=error)

"""Lists the messages that a stack's workers of jobs failed to process, and sends them again."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import click

from tollgate.cli.stack.aws_account import AccountError, AwsAccount, FailedMessage
from tollgate.cli.tables import OutputStyle, show
from tollgate.stores.ports.batches import BatchPlace
from tollgate.wiring.batch_stores import read_message

_QUEUE: Final = "BatchFailures"
_SOURCES: Final = ("BatchQueue", "BackgroundQueue")
_COLUMNS: Final = ("id", "workspace", "queue", "sent_at")
# Seconds for which a message stays hidden, so that one command does not receive it twice.
_HIDDEN_S: Final = 60
_UNREADABLE: Final = BatchPlace(workspace_id="", batch_id="unreadable")


def show_dead_letters(
    stack: str, region: str | None, *, send_again: bool, style: OutputStyle
) -> None:
    """List the failed messages of a stack, or return each to the queue from which it came."""
    try:
        account = AwsAccount(region)
        url = account.queue_url(stack, _QUEUE)
        messages = [*account.failed_messages(url, hidden_s=_HIDDEN_S)]
        if send_again:
            click.echo(f"Sent {_send_again(account, url, messages)} messages again.")
            return
        sources = {account.queue_url(stack, name).rpartition("/")[2]: name for name in _SOURCES}
        for message in messages:
            account.show_message(url, message)
    except AccountError as error:
        raise click.ClickException(str(error)) from error
    rows = [_row(message, sources) for message in messages]
    show(rows, _COLUMNS, style)


def _send_again(account: AwsAccount, url: str, messages: list[FailedMessage]) -> int:
    """Send the messages, and return how many were sent; the others become visible again."""
    sent = 0
    for message in messages:
        if message.source_arn is None:
            account.show_message(url, message)
        else:
            account.send_again(url, message, message.source_arn.rpartition(":")[2])
            sent += 1
    return sent


def _row(message: FailedMessage, sources: Mapping[str, str]) -> dict[str, str]:
    try:
        place = read_message(message.body)
    except ValueError:
        place = _UNREADABLE
    sent_at = datetime.fromtimestamp(message.sent_s, UTC)
    return {
        "id": place.batch_id,
        "workspace": place.workspace_id,
        "queue": sources.get((message.source_arn or "").rpartition(":")[2], ""),
        "sent_at": sent_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }

"""`tollgate webhooks`: the addresses that receive a workspace's events."""

from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import without_none
from tollgate.cli.tables import OutputStyle, as_json, show, show_one
from tollgate.core.dotted_names import DottedName

_WEBHOOK_SHAPE: Final = DottedName[type[Any]]("tollgate.web.webhooks.webhook_routes:WebhookObject")
_DELIVERY_SHAPE: Final = DottedName[type[Any]](
    "tollgate.web.webhooks.webhook_routes:DeliveryObject"
)
_COLUMNS: Final = ("id", "url", "state", "events", "delivered_at", "description", "created_at")
_SENT: Final = ("event_id", "type", "status", "answer", "attempts", "attempted_at", "next_attempt")

_events = click.option(
    "--event",
    "events",
    multiple=True,
    metavar="GLOB",
    help="Event types, such as key.* or budget.*; may be repeated.",
)
_description = click.option("--description", metavar="TEXT", help="Description to show.")


@click.group()
def webhooks() -> None:
    """Create, list, test and delete webhooks; needs a management key."""


@webhooks.command("ls", epilog="Example: tollgate webhooks ls --json")
@calls_gateway
def list_webhooks(api: Api, style: OutputStyle) -> None:
    """List the webhooks, with the state of each."""
    found = api.get("/webhooks")["data"]
    show([_row(each) for each in found], _COLUMNS, style, data=found, shape=_WEBHOOK_SHAPE)


@webhooks.command(
    "create",
    epilog="Example: tollgate webhooks create https://hooks.example --event 'budget.*'",
)
@click.argument("address")
@_events
@_description
@calls_gateway
def create_webhook(
    api: Api, style: OutputStyle, *, address: str, events: tuple[str, ...], description: str | None
) -> None:
    """Create a webhook for all events, or only for each --event; show its secret only this once."""
    body: dict[str, object] = {"url": address, **_given(events, description)}
    _tell_secret(api.post("/webhooks", body), style)


@webhooks.command("update", epilog="Example: tollgate webhooks update 5g8Z9S3BZqHxGdQ --disable")
@click.argument("webhook_id", metavar="ID")
@click.option("--address", metavar="URL", help="Another address.")
@_events
@_description
@click.option(
    "--enable/--disable",
    "enabled",
    default=None,
    help="Whether the webhook gets events from now on.",
)
@calls_gateway
def update_webhook(
    api: Api,
    style: OutputStyle,
    *,
    webhook_id: str,
    events: tuple[str, ...],
    description: str | None,
    address: str | None,
    enabled: bool | None,
) -> None:
    """Change the given settings of a webhook."""
    changes = without_none({"url": address, "enabled": enabled, **_given(events, description)})
    if not changes:
        raise click.UsageError(
            "Give at least one change; `tollgate webhooks update --help` lists them."
        )
    changed = api.patch(f"/webhooks/{webhook_id}", changes)["data"]
    show_one(_row(changed), _COLUMNS, style, data=changed, shape=_WEBHOOK_SHAPE)


@webhooks.command(
    "rotate", epilog="Example: tollgate webhooks rotate 5g8Z9S3BZqHxGdQ --grace-hours 48"
)
@click.argument("webhook_id", metavar="ID")
@click.option(
    "--grace-hours",
    type=click.IntRange(0, 168),
    default=24,
    show_default=True,
    help="Hours during which events are also signed with the old secret.",
)
@calls_gateway
def rotate_webhook(api: Api, style: OutputStyle, *, webhook_id: str, grace_hours: int) -> None:
    """Give a webhook a new secret, which is shown only this once."""
    _tell_secret(api.post(f"/webhooks/{webhook_id}/rotate", {"grace_hours": grace_hours}), style)


@webhooks.command("delete", epilog="Example: tollgate webhooks delete 5g8Z9S3BZqHxGdQ")
@click.argument("webhook_id", metavar="ID")
@calls_gateway
def delete_webhook(api: Api, style: OutputStyle, webhook_id: str) -> None:
    """Delete a webhook; pending events are no longer sent."""
    api.delete(f"/webhooks/{webhook_id}")
    if style == "auto":
        click.echo(f"{webhook_id} is deleted.", err=True)


@webhooks.command("test", epilog="Example: tollgate webhooks test 5g8Z9S3BZqHxGdQ")
@click.argument("webhook_id", metavar="ID")
@calls_gateway
def test_webhook(api: Api, style: OutputStyle, webhook_id: str) -> None:
    """Send an event of type webhook.test now; exit with 1 if the delivery fails."""
    delivery = api.post(f"/webhooks/{webhook_id}/test", {})["data"]
    show_one(_sent_row(delivery), _SENT, style, data=delivery, shape=_DELIVERY_SHAPE)
    if delivery["status"] != "delivered":
        raise SystemExit(1)


@webhooks.command("deliveries", epilog="Example: tollgate webhooks deliveries 5g8Z9S3BZqHxGdQ")
@click.argument("webhook_id", metavar="ID")
@calls_gateway
def list_deliveries(api: Api, style: OutputStyle, webhook_id: str) -> None:
    """List the latest deliveries of a webhook, latest first."""
    found = api.get(f"/webhooks/{webhook_id}/deliveries")["data"]
    show([_sent_row(each) for each in found], _SENT, style, data=found, shape=_DELIVERY_SHAPE)


@webhooks.command(
    "redeliver", epilog="Example: tollgate webhooks redeliver 5g8Z9S3BZqHxGdQ evt_5g0DOGidSaW4fTg"
)
@click.argument("webhook_id", metavar="ID")
@click.argument("event_id", metavar="EVENT")
@calls_gateway
def redeliver_event(api: Api, style: OutputStyle, webhook_id: str, event_id: str) -> None:
    """Send an event again within the next minutes, with the same id."""
    delivery = api.post(f"/webhooks/{webhook_id}/deliveries/{event_id}/redeliver", {})["data"]
    show_one(_sent_row(delivery), _SENT, style, data=delivery, shape=_DELIVERY_SHAPE)


def _given(events: tuple[str, ...], description: str | None) -> dict[str, object]:
    return without_none({"events": list(events) or None, "description": description})


def _tell_secret(reply: Any, style: OutputStyle) -> None:
    """Print only the secret to standard output, for scripts, and a remark to standard error."""
    if style == "json":
        click.echo(as_json(reply["data"]))
        return
    click.echo(reply["data"]["secret"])
    click.echo(
        f"The secret signs events for {reply['data']['id']}, and is not shown again.", err=True
    )


def _row(webhook: Any) -> dict[str, str]:
    state = webhook["disabled_reason"] or ("on" if webhook["enabled"] else "off")
    if webhook["enabled"] and webhook["failing_since"]:
        state = f"fails since {webhook['failing_since']}"
    return {
        "id": webhook["id"],
        "url": webhook["url"],
        "state": state,
        "events": ",".join(webhook["events"]),
        "delivered_at": webhook["delivered_at"] or "",
        "description": webhook["description"],
        "created_at": webhook["created_at"],
    }


def _sent_row(delivery: Any) -> dict[str, str]:
    return {
        "event_id": delivery["event_id"],
        "type": delivery["type"],
        "status": delivery["status"],
        "answer": delivery["answer"],
        "attempts": str(delivery["attempts"]),
        "attempted_at": delivery["attempted_at"] or "",
        "next_attempt": delivery["next_attempt_at"] or "",
    }

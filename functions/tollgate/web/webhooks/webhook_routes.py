"""Routes of a workspace's webhooks: endpoints that receive events, and their deliveries."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter
from msgspec.structs import replace
from pydantic import AfterValidator, BaseModel, Field

from tollgate.core.addresses import find_reach, is_address
from tollgate.core.errors import RequestError, not_found
from tollgate.core.webhooks import (
    DELIVERIES_MAX,
    WEBHOOKS_MAX,
    DeliveryStatus,
    EventDelivery,
    ShownWebhook,
    Webhook,
    WebhookHealth,
    WebhookSettings,
)
from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.services import Services
from tollgate.web.shapes import Body, moment, moment_or_none

_HOUR_S: Final = 3_600


def _public(url: str) -> str:
    """Return a URL; raise ValueError unless its host is a public name without a user."""
    parts = urlsplit(url)
    host = parts.hostname
    if not host or parts.username or parts.password or parts.port == 0 or is_address(host):
        raise ValueError("must have a host name, not an IP address, and no user name")
    if find_reach(host) != "public":
        raise ValueError("must have a host name of the public internet")
    return url


WebhookAddress = Annotated[
    str,
    Field(
        min_length=9,
        max_length=2_000,
        pattern=r"^https://[!-~]+$",
        description="https URL with a public host name and without a user name",
    ),
    AfterValidator(_public),
]
_Glob = Annotated[str, Field(max_length=64, pattern=r"^[a-z*][a-z_.*]*$")]
_Globs = Annotated[
    list[_Glob], Field(min_length=1, max_length=20, description="types of events, such as `key.*`")
]
_Words = Annotated[str, Field(max_length=200)]


class WebhookBody(Body):
    """A webhook to create."""

    url: WebhookAddress
    events: _Globs = Field(default_factory=lambda: ["*"])
    description: _Words = ""
    enabled: bool = True


class WebhookSettingsBody(Body):
    """Settings of a webhook except its address; omitted fields keep their value."""

    events: _Globs | None = None
    description: _Words | None = None
    enabled: bool | None = Field(
        None, description="a webhook that is enabled again gets only later events"
    )


class WebhookChangeBody(WebhookSettingsBody):
    """Changes to a webhook; omitted fields keep their value."""

    url: WebhookAddress | None = None

    def edit(self, settings: WebhookSettings) -> WebhookSettings:
        """Return settings with the changes of the body."""
        changed = self.model_dump(exclude_none=True)
        if self.events is not None:
            changed["events"] = tuple(self.events)
        return replace(settings, **changed)


class SecretRotationBody(Body):
    """The rotation of a webhook's secret."""

    grace_hours: Annotated[int, Field(ge=0, le=168)] = Field(
        24, description="hours for which the old secret signs as well"
    )


class WebhookObject(BaseModel):
    """A webhook."""

    id: str
    url: str
    events: list[str]
    description: str
    enabled: bool
    disabled_reason: str | None = Field(description="null if the gateway did not disable it")
    created_at: datetime
    delivered_at: datetime | None = Field(
        description="time at which the endpoint last accepted an event"
    )
    failing_since: datetime | None = Field(
        description="time since which all deliveries failed; null if the last one succeeded"
    )
    old_secret_expires_at: datetime | None

    @classmethod
    def of(cls, shown: ShownWebhook) -> "WebhookObject":
        """Build the object of a webhook, without the secret."""
        return cls(**_fields(shown))


class NewSecretObject(WebhookObject):
    """A webhook and its secret, which is shown only once."""

    secret: str = Field(description="`whsec_` and the base64 of the key that signs each event")

    @classmethod
    def with_secret(cls, webhook: Webhook) -> "NewSecretObject":
        """Build the object of a webhook with its new secret."""
        shown = ShownWebhook(webhook=webhook, health=WebhookHealth())
        return cls(**_fields(shown), secret=webhook.secret)


class DeliveryObject(BaseModel):
    """The delivery of one event to one endpoint."""

    event_id: str
    type: str
    status: DeliveryStatus
    queued_at: datetime
    attempts: int
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    answer: str = Field(description="HTTP status of the last attempt, or its failure")

    @classmethod
    def of(cls, delivery: EventDelivery) -> "DeliveryObject":
        """Build the object from a stored delivery."""
        return cls(
            event_id=delivery.event_id,
            type=delivery.type,
            status=delivery.status,
            queued_at=moment(delivery.queued_s),
            attempts=delivery.attempts,
            attempted_at=moment_or_none(delivery.attempted_s),
            next_attempt_at=moment_or_none(delivery.next_s),
            answer=delivery.answer,
        )


class WebhookReply(BaseModel):
    """One webhook."""

    data: WebhookObject


class DeletedWebhookReply(BaseModel):
    """A webhook that was deleted."""

    id: str
    deleted: Literal[True] = True


class NewSecretReply(BaseModel):
    """One webhook, with its new secret."""

    data: NewSecretObject


class WebhooksReply(BaseModel):
    """The webhooks of a workspace, oldest first."""

    data: list[WebhookObject] = Field(description=f"at most {WEBHOOKS_MAX}")


class DeliveryReply(BaseModel):
    """One delivery."""

    data: DeliveryObject


class DeliveriesReply(BaseModel):
    """The latest deliveries, newest first."""

    data: list[DeliveryObject] = Field(description=f"at most {DELIVERIES_MAX}, of the last 30 days")


def webhook_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/webhooks`."""
    router = admitted_router(services, prefix="/v1/webhooks", tag="webhooks")
    _declare_settings(router, services)
    _declare_deliveries(router, services)
    return router


def _declare_settings(router: APIRouter, services: Services) -> None:
    store = services.webhooks

    @router.post("", status_code=201)
    async def create_webhook(principal: Caller, by: By, body: WebhookBody) -> NewSecretReply:
        """Create a webhook; only this reply contains the secret."""
        settings = WebhookSettings(
            url=body.url,
            events=tuple(body.events),
            description=body.description,
            enabled=body.enabled,
        )
        webhook = await store.create(principal.workspace_id, settings, by=by)
        return NewSecretReply(data=NewSecretObject.with_secret(webhook))

    @router.get("")
    async def list_webhooks(principal: Caller) -> WebhooksReply:
        """List the webhooks of the workspace."""
        found = await store.list(principal.workspace_id)
        return WebhooksReply(data=[WebhookObject.of(shown) for shown in found])

    @router.get("/{webhook_id}")
    async def show_webhook(principal: Caller, webhook_id: str) -> WebhookReply:
        """Show one webhook."""
        return _reply(await store.get(principal.workspace_id, webhook_id))

    @router.patch("/{webhook_id}")
    async def change_webhook(
        principal: Caller, by: By, webhook_id: str, body: WebhookChangeBody
    ) -> WebhookReply:
        """Change a webhook."""
        return _reply(await store.change(principal.workspace_id, webhook_id, body.edit, by=by))

    @router.delete("/{webhook_id}")
    async def delete_webhook(principal: Caller, by: By, webhook_id: str) -> DeletedWebhookReply:
        """Delete a webhook and its pending deliveries."""
        if not await store.delete(principal.workspace_id, webhook_id, by=by):
            raise _not_found()
        return DeletedWebhookReply(id=webhook_id)

    @router.post("/{webhook_id}/rotate")
    async def rotate_webhook_secret(
        principal: Caller, by: By, webhook_id: str, body: SecretRotationBody
    ) -> NewSecretReply:
        """Create a new secret; during the grace period, both secrets sign each event."""
        grace_s = body.grace_hours * _HOUR_S
        webhook = await store.rotate(principal.workspace_id, webhook_id, grace_s=grace_s, by=by)
        if webhook is None:
            raise _not_found()
        return NewSecretReply(data=NewSecretObject.with_secret(webhook))


def _declare_deliveries(router: APIRouter, services: Services) -> None:
    store = services.webhooks

    @router.post("/{webhook_id}/test")
    async def test_webhook(principal: Caller, webhook_id: str) -> DeliveryReply:
        """Send an event of the type `webhook.test` now, without retries, and return the result."""
        return _delivery(await store.send_test(principal.workspace_id, webhook_id))

    @router.get("/{webhook_id}/deliveries")
    async def list_deliveries(principal: Caller, webhook_id: str) -> DeliveriesReply:
        """List the latest deliveries, newest first."""
        found = await store.deliveries(principal.workspace_id, webhook_id)
        if found is None:
            raise _not_found()
        return DeliveriesReply(data=[DeliveryObject.of(delivery) for delivery in found])

    @router.post("/{webhook_id}/deliveries/{event_id}/redeliver", status_code=202)
    async def redeliver_event(principal: Caller, webhook_id: str, event_id: str) -> DeliveryReply:
        """Send an event again, with the same id, within a few minutes."""
        return _delivery(await store.redeliver(principal.workspace_id, webhook_id, event_id))


def _fields(shown: ShownWebhook) -> dict[str, Any]:
    webhook, health = shown.webhook, shown.health
    has_old = webhook.old_secret is not None
    return {
        "id": webhook.id,
        "url": webhook.url,
        "events": list(webhook.events),
        "description": webhook.description,
        "enabled": webhook.enabled,
        "disabled_reason": webhook.disabled_reason,
        "created_at": moment(webhook.created_s),
        "delivered_at": moment_or_none(health.delivered_s),
        "failing_since": moment_or_none(health.failing_since_s),
        "old_secret_expires_at": moment(webhook.old_secret_ends_s) if has_old else None,
    }


def _reply(shown: ShownWebhook | None) -> WebhookReply:
    if shown is None:
        raise _not_found()
    return WebhookReply(data=WebhookObject.of(shown))


def _delivery(delivery: EventDelivery | None) -> DeliveryReply:
    if delivery is None:
        raise _not_found()
    return DeliveryReply(data=DeliveryObject.of(delivery))


def _not_found() -> RequestError:
    return not_found("There is no such webhook or event.")

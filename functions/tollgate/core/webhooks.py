"""Webhooks of workspaces: the endpoints, the events they receive, and each delivery."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol

from msgspec import Struct, field

from tollgate.core.records.audit import Actor

WEBHOOKS_MAX: Final = 10
DELIVERIES_MAX: Final = 100
TEST_EVENT: Final = "webhook.test"
# The prefix of every signing secret.
SECRET_PREFIX: Final = "whsec_"  # noqa: S105
# `delivered` and `failed` are final; a `pending` delivery will be tried again.
DeliveryStatus = Literal["pending", "delivered", "failed"]


class DeliveryFailed(Exception):
    """Raised if an endpoint did not accept an event, which will be sent again."""


class Webhook(Struct, frozen=True, kw_only=True):
    """An endpoint that receives the events of one workspace."""

    id: str
    workspace_id: str
    url: str
    events: tuple[str, ...]
    """Globs of the event types that the endpoint receives."""
    created_s: int
    description: str = ""
    enabled: bool = True
    disabled_reason: str | None = None
    """The reason why the gateway disabled the webhook; None if the gateway did not disable it."""
    secret: str
    """The secret that signs events; encrypted in the table if the gateway has an encryption key for
    it.
    """
    old_secret: str | None = None
    """The secret before the last rotation, which also signs events until `old_secret_ends_s`."""
    old_secret_ends_s: int = 0

    def wants(self, type_: str) -> bool:
        """Return whether the endpoint receives events of a type."""
        return any(fnmatchcase(type_, glob) for glob in self.events)

    def secrets(self, now_s: float) -> tuple[str, ...]:
        """Return the secrets that sign events at a given time, newest first."""
        old = self.old_secret if now_s < self.old_secret_ends_s else None
        return (self.secret,) if old is None else (self.secret, old)


class WebhookHealth(Struct, frozen=True, kw_only=True):
    """The results of an endpoint's deliveries so far."""

    delivered_s: int | None = None
    """The Unix second at which the endpoint last accepted an event."""
    failing_since_s: int | None = None
    """The Unix second since which every delivery has failed; None if the last one succeeded."""


class ShownWebhook(Struct, frozen=True, kw_only=True):
    """A webhook and its health."""

    webhook: Webhook
    health: WebhookHealth


class WebhookSettings(Struct, frozen=True, kw_only=True):
    """The settings of a webhook that can be changed."""

    url: str
    events: tuple[str, ...] = ("*",)
    description: str = ""
    enabled: bool = True


class WebhookEvent(Struct, frozen=True, kw_only=True):
    """Something that happened in a workspace. The id of an event never changes."""

    id: str
    """`evt_`, Unix milliseconds, a dot and a random part, so ids sort by time."""
    type: str
    workspace_id: str
    created_at: str
    data: Mapping[str, object] = field(default_factory=dict)


class EventDelivery(Struct, frozen=True, kw_only=True):
    """The delivery of one event to one endpoint."""

    event_id: str
    type: str
    status: DeliveryStatus
    queued_s: int
    """The Unix second at which the event was queued; delivery is retried for three days."""
    attempts: int = 0
    attempted_s: int | None = None
    next_s: int | None = None
    """The Unix second of the next attempt; None if there is none."""
    answer: str = ""
    """The HTTP status of the last attempt, or a description of the failure if there was
    no reply.
    """


class WebhookStore(Protocol):
    """The webhooks of all workspaces."""

    async def create(self, workspace_id: str, settings: WebhookSettings, *, by: Actor) -> Webhook:
        """Create a webhook; raise RequestError if the workspace already has WEBHOOKS_MAX."""

    async def list(self, workspace_id: str) -> Sequence[ShownWebhook]:
        """Return the webhooks of a workspace, oldest first."""

    async def get(self, workspace_id: str, webhook_id: str) -> ShownWebhook | None:
        """Return a webhook of this workspace; None if it does not exist."""

    async def change(
        self,
        workspace_id: str,
        webhook_id: str,
        edit: Callable[[WebhookSettings], WebhookSettings],
        *,
        by: Actor,
    ) -> ShownWebhook | None:
        """Replace the settings with the result of `edit`; return None if the webhook does not
        exist.
        """

    async def rotate(
        self, workspace_id: str, webhook_id: str, *, grace_s: int, by: Actor
    ) -> Webhook | None:
        """Replace the secret; the old one also signs for `grace_s`. Returns None if there is no
        webhook.
        """

    async def delete(self, workspace_id: str, webhook_id: str, *, by: Actor) -> bool:
        """Delete a webhook; return False if it does not exist."""

    async def send_test(self, workspace_id: str, webhook_id: str) -> EventDelivery | None:
        """Send a test event once, without retries; return None if the webhook does not exist."""

    async def deliveries(
        self, workspace_id: str, webhook_id: str
    ) -> Sequence[EventDelivery] | None:
        """Return the latest deliveries, newest first; None if the webhook does not exist."""

    async def redeliver(
        self, workspace_id: str, webhook_id: str, event_id: str
    ) -> EventDelivery | None:
        """Queue a delivered or abandoned event again; return None if it does not exist."""


def iso_ms(at_ms: int) -> str:
    """Format Unix milliseconds in ISO 8601."""
    moment = datetime.fromtimestamp(at_ms // 1_000, UTC).replace(microsecond=at_ms % 1_000 * 1_000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Creates webhook events from audit log entries and alerts, and computes when to retry."""

from typing import Final

from msgspec import Struct

from tollgate.core.clock import DAY_S
from tollgate.core.jobs import Job
from tollgate.core.records.audit import AuditEntry
from tollgate.core.webhooks import WebhookEvent, iso_ms

EVENT_PREFIX: Final = "evt_"
BUDGET_EVENT: Final = "budget.threshold_reached"
# How long an event is retried. An endpoint that accepts no event for this long is disabled.
TRIED_FOR_S: Final = 3 * DAY_S
_FIRST_WAIT_S: Final = 240
_WAIT_MAX_S: Final = 8 * 3600
# Irregular past tenses of the verbs in actions, and an action that is a state.
_IRREGULAR: Final = {
    "adjustment": "adjusted",
    "anomaly": "anomaly",
    "canary": "canary_changed",
    "close_all": "all_closed",
    "grow": "grown",
    "rollback": "rolled_back",
    "rotation_due": "rotation_due",
}


class BudgetAlert(Struct, frozen=True, kw_only=True):
    """A budget alert, as it is stored."""

    id: str
    workspace_id: str
    created_at: str
    data: dict[str, object]


def event_type(entry: AuditEntry) -> str:
    """Return the event type for an audit log entry: `key.create` becomes `key.created`."""
    kind, _, verb = entry.action.rpartition(".")
    disabled = entry.after.get("disabled")
    if entry.action in ("key.change", "member.change") and disabled is not None:
        kind = entry.action.removesuffix("change")
        return f"{kind}disabled" if disabled == "true" else f"{kind}enabled"
    done = _IRREGULAR.get(verb) or f"{verb.removesuffix('e')}ed"
    return f"{kind}.{done}"


def event_of_entry(entry: AuditEntry, workspace_id: str) -> WebhookEvent:
    """Return the event for an audit log entry, without the actor's IP address and request id."""
    actor = entry.actor
    return WebhookEvent(
        id=EVENT_PREFIX + entry.id,
        type=event_type(entry),
        workspace_id=workspace_id,
        created_at=iso_ms(entry.at_ms),
        data={
            "actor": {
                "type": actor.kind,
                "id": actor.id,
                "name": actor.name,
                "member_id": actor.member_id,
            },
            "target": entry.target,
            "target_name": entry.target_name,
            "before": dict(entry.before),
            "after": dict(entry.after),
        },
    )


def event_of_alert(alert: BudgetAlert, created_s: int) -> WebhookEvent:
    """Return the event for a budget alert."""
    return WebhookEvent(
        id=f"{EVENT_PREFIX}{created_s * 1_000:013d}.{alert.id.removeprefix(EVENT_PREFIX)}",
        type=BUDGET_EVENT,
        workspace_id=alert.workspace_id,
        created_at=iso_ms(created_s * 1_000),
        data=alert.data,
    )


def event_of_job(job: Job, kind: str, at_ms: int) -> WebhookEvent:
    """Return the event for a job that has ended, with OpenAI's type and data.

    https://developers.openai.com/docs/guides/webhooks (2026-11-27)
    """
    return WebhookEvent(
        id=f"{EVENT_PREFIX}{at_ms:013d}.{job.id.partition('_')[2]}",
        type=kind,
        workspace_id=job.workspace_id,
        created_at=iso_ms(at_ms),
        data={"id": job.id},
    )


def next_try_s(attempts: int, now_s: int) -> int:
    """Return the Unix second of the next attempt; the delay doubles from 4 minutes to 8 hours."""
    return now_s + min(_WAIT_MAX_S, _FIRST_WAIT_S << min(attempts - 1, 10))

"""Wires the stores of keys, workspaces, credit and activity."""

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.http1.egress import Egress
from tollgate.settings import Settings
from tollgate.stores.keys.administration import DynamoKeyStore
from tollgate.stores.money.credits import DynamoCreditStore
from tollgate.stores.money.statements import DynamoStatementStore
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.people.members import DynamoMemberStore
from tollgate.stores.people.playground import DynamoPlaygroundStore
from tollgate.stores.people.sessions import DynamoSessionStore
from tollgate.stores.people.teams import DynamoTeamStore
from tollgate.stores.records.access_log import DynamoAccessLog
from tollgate.stores.records.activity import DynamoActivityStore
from tollgate.stores.records.audit_log import DynamoAuditLog
from tollgate.stores.records.audited_cache import AuditedAnswerCache
from tollgate.stores.records.responses import AuditedResponses
from tollgate.stores.subjects.standing import DynamoSubjectStore
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender
from tollgate.wiring.stores import Stores
from tollgate.wiring.webhook_secrets import wire_sealer


class Administration(Struct, frozen=True, kw_only=True):
    """The stores for the administration of keys, people, workspaces, credit and activity."""

    operator_workspace: str
    """Workspace whose management keys may administer all workspaces."""
    keys: DynamoKeyStore
    workspaces: Workspaces
    credits: DynamoCreditStore
    activity: DynamoActivityStore
    statements: DynamoStatementStore
    audit_log: DynamoAuditLog
    access_log: DynamoAccessLog
    teams: DynamoTeamStore
    members: DynamoMemberStore
    sessions: DynamoSessionStore
    playgrounds: DynamoPlaygroundStore
    webhooks: DynamoWebhookStore
    subjects: DynamoSubjectStore
    answer_cache: AuditedAnswerCache | None
    """None in a deployment without a bucket for content."""
    responses: AuditedResponses | None
    """None in a deployment without a bucket for content."""


def wire_administration(settings: Settings, stores: Stores, clock: Clock) -> Administration:
    """Return the administration stores over the tables of `stores`."""
    client, tables, wallets = stores.client, stores.tables, stores.wallets
    ids = IdSource(clock)
    sealer = wire_sealer(settings, stores.kms, ids)
    workspaces = Workspaces(client, tables, wallets, ids=ids, clock=clock)
    prefix = settings.key_prefix
    keys = DynamoKeyStore(stores.keys, client, tables, ids=ids, clock=clock, prefix=prefix)
    activity = DynamoActivityStore(client, tables, stores.generations, ids=ids, clock=clock)
    return Administration(
        keys=keys,
        teams=DynamoTeamStore(client, tables, stores.generations, ids=ids, clock=clock),
        members=DynamoMemberStore(client, tables, stores.generations, ids=ids, clock=clock),
        sessions=DynamoSessionStore(
            keys, stores.keys, client, tables, ids=ids, clock=clock, prefix=prefix
        ),
        playgrounds=DynamoPlaygroundStore(stores.keys, client, tables, ids=ids, clock=clock),
        operator_workspace=settings.operator_workspace,
        workspaces=workspaces,
        credits=DynamoCreditStore(client, tables, wallets, workspaces, ids=ids, clock=clock),
        activity=activity,
        statements=DynamoStatementStore(
            client, tables, workspaces=workspaces, activity=activity, clock=clock
        ),
        audit_log=DynamoAuditLog(client, tables, clock),
        access_log=DynamoAccessLog(client, tables, ids=ids, clock=clock),
        webhooks=DynamoWebhookStore(
            client,
            tables,
            EventSender(clock, Egress(), sealer),
            sealer,
            ids=ids,
            clock=clock,
        ),
        subjects=DynamoSubjectStore(client, tables, ids=ids, clock=clock),
        answer_cache=None
        if stores.answer_cache is None
        else AuditedAnswerCache(client, tables, stores.answer_cache, ids=ids, clock=clock),
        responses=None
        if stores.responses is None
        else AuditedResponses(client, tables, stores.responses, ids=ids, clock=clock),
    )

"""Sets of stores for tests, over memory or over any endpoint that speaks DynamoDB's protocol."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from tests.clocks import HaltedClock
from tests.dynamodb_grammar import check_request
from tests.generation_store import generation_store
from tests.memory.activity import MemoryActivityStore
from tests.memory.books import MemoryBooks
from tests.memory.cooldowns import MemoryCooldownStore
from tests.memory.credits import MemoryCreditStore
from tests.memory.keys import MemoryKeyStore
from tests.memory.people import MemoryMemberStore, MemorySessionStore, MemoryTeamStore
from tests.memory.playground import MemoryPlaygroundStore
from tests.memory.statements import MemoryStatementStore
from tests.memory.stores import (
    MemoryAccessLog,
    MemoryAdmissions,
    MemoryAuditLog,
    MemoryGenerationStore,
    MemoryLedger,
)
from tests.memory.subjects import MemorySubjectStore
from tests.memory.webhooks import MemoryWebhookStore
from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsJson, AwsReply, JsonService
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import IdSource, created_s, encode_id
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor, AuditEntry
from tollgate.core.records.generation import GenerationRecord, Outcome, RoutingTrace
from tollgate.stores.aws.tables import Tables, create_tables, wallet_key
from tollgate.stores.batches.background import BACKGROUND
from tollgate.stores.batches.jobs import BATCHES, DynamoJobStore
from tollgate.stores.batches.queue import find_job_holds
from tollgate.stores.batches.videos import VIDEO_JOBS
from tollgate.stores.keys.administration import DynamoKeyStore
from tollgate.stores.keys.lookup import DynamoKeyDirectory
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.money.admissions import DynamoAdmissions
from tollgate.stores.money.audit import Audit
from tollgate.stores.money.credits import DynamoCreditStore
from tollgate.stores.money.ledger import DynamoLedger
from tollgate.stores.money.settlements import Settlements
from tollgate.stores.money.statements import DynamoStatementStore
from tollgate.stores.money.sweeper import Sweeper
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.people.members import DynamoMemberStore
from tollgate.stores.people.playground import DynamoPlaygroundStore
from tollgate.stores.people.sessions import DynamoSessionStore
from tollgate.stores.people.teams import DynamoTeamStore
from tollgate.stores.ports.access_log import AccessLog
from tollgate.stores.ports.administration import (
    ActivityStore,
    AuditLog,
    GenerationStore,
    KeyStore,
    KeySummary,
    NewKey,
    StatementStore,
)
from tollgate.stores.ports.base import Admissions, CooldownStore, Hold, Ledger
from tollgate.stores.ports.credit import CreditStore
from tollgate.stores.ports.subjects import SubjectStore
from tollgate.stores.records.access_log import DynamoAccessLog
from tollgate.stores.records.activity import DynamoActivityStore
from tollgate.stores.records.audit_log import DynamoAuditLog
from tollgate.stores.routing.cooldowns import DynamoCooldownStore
from tollgate.stores.routing.publications import PublicationStore
from tollgate.stores.rules.key_names import choose_free_name
from tollgate.stores.subjects.standing import DynamoSubjectStore

# Saturday 2026-11-21, 12:30:01 UTC.
NOON_S = 1795264201.0
REGION = "eu-central-1"
PREFIX = "sk-tg-"
RETENTION_S = 30 * DAY_S
# Whom changes of tests are by.
TESTER = Actor(kind="process", id="tests")


class HandClock:
    """A clock that only tests and sleepers move."""

    def __init__(self, now_s: float = NOON_S) -> None:
        self.now = now_s

    def now_s(self) -> float:
        return self.now

    def monotonic_s(self) -> float:
        return self.now

    async def sleep(self, delay_s: float) -> None:
        self.now += delay_s


class GrammarChecked:
    """Passes calls on after parsing every expression in them against DynamoDB's grammar."""

    def __init__(self, client: AwsCaller) -> None:
        self._client = client

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        check_request(payload)
        return await self._client.call(operation, payload, attempts_max=attempts_max)


class TestClock(Clock, Protocol):
    """A clock whose present may be set."""

    now: float


@dataclass(frozen=True)
class Stores:
    """One set of stores over the same books."""

    ledger: Ledger
    admissions: Admissions
    keys: KeyStore
    credits: CreditStore
    generations: GenerationStore
    activity: ActivityStore
    statements: StatementStore
    audit_log: AuditLog
    access_log: AccessLog
    cooldowns: CooldownStore
    subjects: SubjectStore
    clock: TestClock


@dataclass(frozen=True)
class DynamoStores(Stores):
    """The stores on DynamoDB, with what only they have."""

    client: AwsCaller
    tables: Tables
    wallets: Wallets
    publications: PublicationStore
    workspaces: Workspaces
    sweeper: Sweeper
    audit: Audit
    activity: DynamoActivityStore
    teams: DynamoTeamStore
    members: DynamoMemberStore
    sessions: DynamoSessionStore
    playgrounds: DynamoPlaygroundStore
    subjects: DynamoSubjectStore

    async def forget(self, table: str, partition: str, sort: str) -> None:
        """Delete one item, as its time to live would."""
        key = {"pk": string(partition), "sk": string(sort)}
        await self.client.call("DeleteItem", {"TableName": getattr(self.tables, table), "Key": key})

    async def lock(self, workspace_id: str, shard: int = 0) -> None:
        """Lock one shard, as an administrator will."""
        key = {"TableName": self.tables.ledger, "Key": wallet_key(workspace_id, shard)}
        values = {":one": number(1)}
        update = {"UpdateExpression": "SET lk = :one", "ExpressionAttributeValues": values}
        await self.client.call("UpdateItem", key | update)


@dataclass(frozen=True)
class MemoryStores(Stores):
    """The stores in memory."""

    books: MemoryBooks
    webhooks: MemoryWebhookStore
    teams: MemoryTeamStore
    members: MemoryMemberStore
    sessions: MemorySessionStore
    playgrounds: MemoryPlaygroundStore

    async def lock(self, workspace_id: str) -> None:
        self.books.lock(workspace_id)


_Client = TypeVar("_Client", bound=AwsJson)


def aws_client(
    endpoint_url: str,
    service: JsonService = "dynamodb",
    *,
    clock: Clock | None = None,
    timeout_s: float = 1.0,
) -> AwsJson:
    """A client with fixed credentials; emulators do not check signatures."""
    return client_of(AwsJson, endpoint_url, service, clock=clock, timeout_s=timeout_s)


def client_of(
    kind: type[_Client],
    endpoint_url: str,
    service: JsonService = "dynamodb",
    *,
    clock: Clock | None = None,
    timeout_s: float = 1.0,
) -> _Client:
    """The same of a class that is made of it."""
    clock = clock or HandClock()
    return kind(
        service,
        REGION,
        Signer(service, REGION, lambda: Credentials("test", "test"), clock),
        clock,
        jitter=IdSource(clock).uniform,
        endpoint_url=endpoint_url,
        timeout_s=timeout_s,
    )


def memory_stores(clock: Clock | None = None) -> MemoryStores:
    """Fresh books."""
    clock = clock or HandClock()
    books, ids = MemoryBooks(), IdSource(clock)
    keys = MemoryKeyStore(books, ids, clock, PREFIX)
    return MemoryStores(
        ledger=MemoryLedger(books, ids, clock),
        admissions=MemoryAdmissions(books, clock),
        keys=keys,
        credits=MemoryCreditStore(books, clock),
        generations=MemoryGenerationStore(books),
        activity=MemoryActivityStore(books),
        statements=MemoryStatementStore(books, clock),
        audit_log=MemoryAuditLog(books, clock),
        access_log=MemoryAccessLog(books, clock),
        cooldowns=MemoryCooldownStore(clock),
        subjects=MemorySubjectStore(books, ids, clock),
        clock=clock,
        books=books,
        webhooks=MemoryWebhookStore(books, ids, clock),
        teams=MemoryTeamStore(books, ids, clock),
        members=MemoryMemberStore(books, ids, clock),
        sessions=MemorySessionStore(books, ids, clock, keys, PREFIX),
        playgrounds=MemoryPlaygroundStore(books, ids, clock, PREFIX),
    )


def dynamo_stores(
    client: AwsCaller,
    tables: Tables,
    clock: TestClock,
    ids: IdSource | None = None,
    *,
    settlements: Settlements | None = None,
) -> DynamoStores:
    """Stores over tables that exist; several sets are several processes.

    Nothing is settled later by a clock that sleepers move: they would move it by minutes."""
    ids = ids or IdSource(clock)
    halted = HaltedClock(clock) if isinstance(clock, HandClock) else clock
    settlements = settlements or Settlements(halted, ids)
    wallets = Wallets(client, tables.ledger)
    key_states = KeyStates(client, tables.ledger, clock)
    publications = PublicationStore(client, tables.core, None, clock=clock)
    generations = generation_store(client, tables, clock, RETENTION_S)
    workspaces = Workspaces(client, tables, wallets, ids=ids, clock=clock)
    directory = DynamoKeyDirectory(
        client, tables, key_states, clock=clock, prefix=PREFIX, publications=publications
    )
    keys = DynamoKeyStore(directory, client, tables, ids=ids, clock=clock, prefix=PREFIX)
    activity = DynamoActivityStore(client, tables, generations, ids=ids, clock=clock)
    jobs = partial(DynamoJobStore[Any], client, tables.core, ids=ids, clock=clock)
    return DynamoStores(
        ledger=DynamoLedger(wallets, key_states, generations, settlements, ids=ids, clock=clock),
        admissions=DynamoAdmissions(client, tables.ledger, clock),
        keys=keys,
        teams=DynamoTeamStore(client, tables, generations, ids=ids, clock=clock),
        members=DynamoMemberStore(client, tables, generations, ids=ids, clock=clock),
        sessions=DynamoSessionStore(
            keys, directory, client, tables, ids=ids, clock=clock, prefix=PREFIX
        ),
        playgrounds=DynamoPlaygroundStore(directory, client, tables, ids=ids, clock=clock),
        credits=DynamoCreditStore(client, tables, wallets, workspaces, ids=ids, clock=clock),
        generations=generations,
        activity=activity,
        statements=DynamoStatementStore(
            client, tables, workspaces=workspaces, activity=activity, clock=clock
        ),
        audit_log=DynamoAuditLog(client, tables, clock),
        access_log=DynamoAccessLog(client, tables, ids=ids, clock=clock),
        cooldowns=DynamoCooldownStore(client, tables.core, clock),
        subjects=DynamoSubjectStore(client, tables, ids=ids, clock=clock),
        clock=clock,
        client=client,
        tables=tables,
        wallets=wallets,
        publications=publications,
        workspaces=workspaces,
        audit=Audit(
            client,
            tables,
            wallets=wallets,
            workspaces=workspaces,
            clock=clock,
            retention_s=RETENTION_S,
        ),
        sweeper=Sweeper(
            client,
            tables.ledger,
            wallets=wallets,
            keys=key_states,
            generations=generations,
            clock=clock,
            find_waiting=partial(find_job_holds, *map(jobs, (BATCHES, BACKGROUND, VIDEO_JOBS))),
        ),
    )


async def fresh_tables(client: AwsCaller) -> Tables:
    """Three empty tables that no other test uses."""
    name = os.urandom(6).hex()
    tables = Tables(core=f"{name}-core", ledger=f"{name}-ledger", generations=f"{name}-generations")
    await create_tables(client, tables)
    return tables


async def scan_items(client: AwsCaller, table: str) -> list[Item]:
    """Return every item of a table."""
    items: list[Item] = []
    scan: dict[str, object] = {"TableName": table, "ConsistentRead": True}
    while True:
        reply = await client.call("Scan", scan)
        items += reply["Items"]
        if "LastEvaluatedKey" not in reply:
            return items
        scan["ExclusiveStartKey"] = reply["LastEvaluatedKey"]


async def funded_key(
    stores: Stores, amount_nano_usd: int, new: NewKey | None = None
) -> tuple[str, Principal]:
    """A workspace with so much credit and a key in it: the secret, and who it is."""
    new = new or NewKey(workspace_id="acme", label="test", requests_per_minute=6000, burst=1000)
    await stores.credits.grant(new.workspace_id, "first", amount_nano_usd, "test", by=TESTER)
    label = choose_free_name(await stores.keys.names(new.workspace_id), new.label)
    created = await stores.keys.create(replace(new, label=label), by=TESTER)
    return created.secret, await stores.keys.authenticate(created.secret)


def an_entry() -> AuditEntry:
    """An entry that no other is like, for what is written along with one."""
    return AuditEntry(
        id=f"{int(NOON_S * 1000):013d}.{encode_id(os.urandom(11))}",
        at_ms=int(NOON_S * 1000),
        actor=TESTER,
        workspace_id=None,
        action="catalog.publish",
        target="f" * 64,
    )


async def disable(stores: Stores, key_id: str, workspace_id: str = "acme") -> KeySummary | None:
    """Disable a key."""
    return await stores.keys.change(
        workspace_id, key_id, lambda settings: replace(settings, disabled=True), by=TESTER
    )


def record_of(hold: Hold, cost_nano_usd: int, outcome: Outcome = "ok") -> GenerationRecord:
    """A small record for a hold."""
    return GenerationRecord(
        id=hold.id,
        created_s=created_s(hold.id),
        workspace_id=hold.workspace_id,
        key_id=hold.key_id,
        outcome=outcome,
        streamed=False,
        catalog_sha="ab" * 32,
        trace=RoutingTrace(
            requested_model="test/echo",
            route=None,
            rule=None,
            draw_key_hash="cd",
            tier=None,
            capabilities=(),
            estimated_input_tokens=1,
            output_tokens_max=None,
        ),
        cost_nano_usd=cost_nano_usd,
        held_nano_usd=hold.wallet_nano_usd,
        shard=hold.shard,
        slices=hold.slices,
    )

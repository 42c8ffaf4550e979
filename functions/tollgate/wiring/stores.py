"""Wires the stores that every function uses, over one DynamoDB client."""

from msgspec import Struct

from tollgate.aws.aws_json import TIMEOUT_S, AwsJson
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.aws.tables import Tables, create_tables
from tollgate.stores.files.reader import DynamoFileReader
from tollgate.stores.keys.lookup import DynamoKeyDirectory
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.money.admissions import DynamoAdmissions
from tollgate.stores.money.ledger import DynamoLedger
from tollgate.stores.money.settlements import Settlements
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.records.answer_cache import ObjectAnswerCache
from tollgate.stores.records.bills import DynamoBillStore
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.records.kept_answers import DynamoAnswerStore
from tollgate.stores.records.seal_keys import DynamoSealKeys
from tollgate.stores.routing.cooldowns import DynamoCooldownStore
from tollgate.stores.routing.publications import PublicationStore
from tollgate.wiring.aws import aws_json, wire_kms, wire_objects


class Stores(Struct, frozen=True, kw_only=True):
    """The stores of generations, keys and publications, and the stores of objects."""

    client: AwsJson
    kms: AwsJson | None
    """The client for KMS; None if webhooks' secrets have no KMS key."""
    tables: Tables
    wallets: Wallets
    key_states: KeyStates
    keys: DynamoKeyDirectory
    generations: DynamoGenerationStore
    ledger: DynamoLedger
    admissions: DynamoAdmissions
    cooldowns: DynamoCooldownStore
    objects: ObjectStore | None
    answers: DynamoAnswerStore | None
    answer_cache: ObjectAnswerCache | None
    contents: ObjectContentLog | None
    responses: ObjectContentLog | None
    named_files: DynamoFileReader | None
    seal_keys: DynamoSealKeys
    publications: PublicationStore

    async def create_tables(self) -> None:
        """Create missing tables on hosts without a template; raise LedgerError on failure."""
        try:
            await create_tables(self.client, self.tables)
        except StoreUnavailable as unavailable:
            raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, str(unavailable)) from unavailable

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.close()
        if self.kms is not None:
            await self.kms.close()
        if self.objects is not None:
            await self.objects.close()


def wire_stores(settings: Settings, clock: Clock, *, timeout_s: float = TIMEOUT_S) -> Stores:
    """Return the stores over the tables in the settings; `timeout_s` limits each call."""
    client = aws_json(
        settings, "dynamodb", settings.dynamodb_endpoint_url, clock, timeout_s=timeout_s
    )
    tables = Tables(
        core=settings.core_table,
        ledger=settings.ledger_table,
        generations=settings.generations_table,
    )
    ids = IdSource(clock)
    wallets = Wallets(client, tables.ledger)
    states = KeyStates(client, tables.ledger, clock)
    objects = wire_objects(settings, clock)
    publications = PublicationStore(client, tables.core, objects, clock=clock)
    bills = (
        DynamoBillStore(client, tables.core, retention_s=settings.bill_days * DAY_S, clock=clock)
        if settings.bill_days > settings.record_days
        else None
    )
    generations = DynamoGenerationStore(
        client, tables.generations, retention_s=settings.record_days * DAY_S, bills=bills
    )
    answers = answer_cache = contents = responses = named_files = None
    if objects is not None:
        answers = DynamoAnswerStore(client, tables.core, objects, clock=clock)
        answer_cache = ObjectAnswerCache(objects)
        contents = ObjectContentLog(objects, clock=clock)
        responses = ObjectContentLog(objects, clock=clock, kind="responses")
        named_files = DynamoFileReader(client, tables.core, objects, clock)
    return Stores(
        client=client,
        kms=wire_kms(settings, clock),
        tables=tables,
        wallets=wallets,
        key_states=states,
        keys=DynamoKeyDirectory(
            client,
            tables,
            states,
            clock=clock,
            prefix=settings.key_prefix,
            publications=publications,
        ),
        generations=generations,
        ledger=DynamoLedger(
            wallets, states, generations, Settlements(clock, ids), ids=ids, clock=clock
        ),
        admissions=DynamoAdmissions(client, tables.ledger, clock),
        cooldowns=DynamoCooldownStore(client, tables.core, clock),
        objects=objects,
        answers=answers,
        answer_cache=answer_cache,
        contents=contents,
        responses=responses,
        named_files=named_files,
        seal_keys=DynamoSealKeys(client, tables.core, ids),
        publications=publications,
    )

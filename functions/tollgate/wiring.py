"""Settings and a catalog become a gateway: the only importer of concrete classes.

What only one kind of function needs (FastAPI, the command line) is joined on by its entry point.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.applications import Starlette

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.secret import SecretReference
from tollgate.engine.gateway import Gateway, Journal, Pace
from tollgate.ingress.chat_completions import ChatCompletions
from tollgate.providers.base import Provider
from tollgate.providers.registry import ProviderServices, Registry
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.providers.transports.media_guard import MediaGuard
from tollgate.routing.catalog import Catalog
from tollgate.routing.planner import Planner
from tollgate.settings import Settings, environment_variable
from tollgate.stores.activity import DynamoActivityStore
from tollgate.stores.alert_channels import SnsTopic, Webhook
from tollgate.stores.answers import DynamoAnswerStore
from tollgate.stores.audit import Audit
from tollgate.stores.aws_json import TIMEOUT_S, AwsJson, JsonService
from tollgate.stores.budgets import AlertChannel, Budgets
from tollgate.stores.caretaker import Caretaker
from tollgate.stores.contents import ObjectContentLog
from tollgate.stores.cooldowns import DynamoCooldownStore
from tollgate.stores.credits import DynamoCreditStore
from tollgate.stores.failures import refusing_when_unavailable
from tollgate.stores.generations import DynamoGenerationStore
from tollgate.stores.key_states import KeyStates
from tollgate.stores.keys import DynamoKeyStore
from tollgate.stores.ledger import DynamoLedger
from tollgate.stores.objects import FolderObjects, ObjectStore, S3Objects
from tollgate.stores.secrets import AwsSecretStore
from tollgate.stores.sweeper import Sweeper
from tollgate.stores.tables import Tables, create_tables
from tollgate.stores.wallets import Wallets
from tollgate.stores.workspaces import Workspaces
from tollgate.web.chat_app import chat_app
from tollgate.web.cors import WebLimits
from tollgate.web.services import Services
from tollgate.wire.sigv4 import Credentials, Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Everything that is kept in DynamoDB, behind one client.

    Management keys of the workspace `operator_workspace` look after all workspaces.
    """

    client: AwsJson
    tables: Tables
    operator_workspace: str
    keys: DynamoKeyStore
    workspaces: Workspaces
    credits: DynamoCreditStore
    generations: DynamoGenerationStore
    activity: DynamoActivityStore
    ledger: DynamoLedger
    cooldowns: DynamoCooldownStore
    sweeper: Sweeper
    caretaker: Caretaker
    audit: Audit
    objects: ObjectStore | None
    answers: DynamoAnswerStore | None
    contents: ObjectContentLog | None

    async def create_tables(self) -> None:
        """Make the tables that are not there yet; only where there is no template to do it."""
        with refusing_when_unavailable():
            await create_tables(self.client, self.tables)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.close()
        if self.objects is not None:
            await self.objects.close()


@dataclass(frozen=True, slots=True)
class Providers:
    """The providers of one catalog."""

    catalog: Catalog
    registry: Registry

    def provider(self, slug: str) -> Provider:
        """The provider; KeyError if the catalog has none of that name."""
        return self.registry.provider(self.catalog.providers[slug])


def wire_stores(settings: Settings, clock: Clock, *, timeout_s: float = TIMEOUT_S) -> Stores:
    """The stores of the tables that the settings name; `timeout_s` limits each of their calls."""
    client = _aws_json(
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
    generations = DynamoGenerationStore(client, tables.generations)
    workspaces = Workspaces(client, tables, wallets, ids=ids, clock=clock)
    objects = _objects(settings, clock)
    answers = contents = None
    if objects is not None:
        answers = DynamoAnswerStore(client, tables.core, objects, clock=clock)
        contents = ObjectContentLog(objects, clock=clock)
    return Stores(
        client=client,
        tables=tables,
        operator_workspace=settings.operator_workspace,
        keys=DynamoKeyStore(
            client, tables, states, ids=ids, clock=clock, prefix=settings.key_prefix
        ),
        workspaces=workspaces,
        credits=DynamoCreditStore(client, tables, wallets, workspaces, ids=ids, clock=clock),
        generations=generations,
        activity=DynamoActivityStore(client, tables, generations, clock=clock),
        ledger=DynamoLedger(wallets, states, generations, ids=ids, clock=clock),
        cooldowns=DynamoCooldownStore(client, tables.core, clock),
        sweeper=Sweeper(
            client,
            tables.ledger,
            wallets=wallets,
            keys=states,
            generations=generations,
            clock=clock,
        ),
        caretaker=Caretaker(
            client,
            tables,
            wallets=wallets,
            workspaces=workspaces,
            budgets=Budgets(
                client,
                tables,
                workspaces,
                wire_alert_channels(settings, clock),
                ids=ids,
                clock=clock,
            ),
            ids=ids,
        ),
        audit=Audit(client, tables, wallets=wallets, workspaces=workspaces, clock=clock),
        objects=objects,
        answers=answers,
        contents=contents,
    )


def wire_alert_channels(settings: Settings, clock: Clock) -> Sequence[AlertChannel]:
    """Where the settings want alerts to go."""
    channels: list[AlertChannel] = []
    if settings.alert_topic_arn:
        region = settings.aws_region
        signer = Signer("sns", region, lambda: _local_credentials(settings), clock)
        url = settings.sns_endpoint_url or f"https://sns.{region}.amazonaws.com"
        channels.append(SnsTopic(settings.alert_topic_arn, signer, url))
    if settings.alert_webhook_url:
        endpoint_url = settings.secretsmanager_endpoint_url
        secrets = _aws_json(settings, "secretsmanager", endpoint_url, clock)
        channels.append(
            Webhook(
                settings.alert_webhook_url,
                SecretReference(secret=settings.alert_webhook_secret),
                AwsSecretStore(secrets, environment_variable, clock),
            )
        )
    return channels


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The connections to providers, and to where their keys are kept."""

    registry: Registry
    pool: HttpPool
    secrets: AwsJson | None

    async def aclose(self) -> None:
        """Close the connections."""
        await self.pool.close()
        if self.secrets is not None:
            await self.secrets.close()


def wire_upstream(settings: Settings, clock: Clock) -> Upstream:
    """Transports and codecs, made as providers are asked for."""
    pool = HttpPool()
    endpoint_url = settings.secretsmanager_endpoint_url
    secrets = None
    if endpoint_url or _credentials(settings):
        secrets = _aws_json(settings, "secretsmanager", endpoint_url, clock)
    services = ProviderServices(
        pool=pool,
        secrets=AwsSecretStore(secrets, environment_variable, clock),
        credentials=lambda: _credentials(settings),
        clock=clock,
    )
    return Upstream(registry=Registry(services), pool=pool, secrets=secrets)


def wire_gateway(
    stores: Stores, upstream: Upstream, catalog: Catalog, *, clock: Clock, journal: Journal
) -> Gateway:
    """The gateway of one catalog."""
    defaults = catalog.defaults
    return Gateway(
        keys=stores.keys,
        ledger=stores.ledger,
        cooldowns=stores.cooldowns,
        cooldown=defaults.cooldown.policy,
        planner=Planner(catalog),
        providers=Providers(catalog, upstream.registry),
        media=MediaGuard(),
        clock=clock,
        ids=IdSource(clock),
        journal=journal,
        pace=Pace(
            early_commit_after_s=defaults.early_commit_after_s,
            keep_alive_s=defaults.keep_alive_s,
            non_streamed_total_s=defaults.timeouts.non_streamed_total_s,
        ),
        credits_per_usd=catalog.billing.credits_per_usd,
        admission=catalog.billing.admission,
    )


def wire_chat_app(gateway: Gateway, stores: Stores, limits: WebLimits) -> Starlette:
    """The app of the metered routes."""
    ingress = ChatCompletions(gateway.credits_per_usd, ids=gateway.ids)
    return chat_app(gateway, ingress, limits, answers=stores.answers, contents=stores.contents)


def wire_services(stores: Stores, catalog: Catalog, *, clock: Clock, journal: Journal) -> Services:
    """What the api routes work with."""
    ids = IdSource(clock)
    return Services(
        keys=stores.keys,
        workspaces=stores.workspaces,
        credits=stores.credits,
        generations=stores.generations,
        activity=stores.activity,
        cooldowns=stores.cooldowns,
        contents=stores.contents,
        catalog=lambda: catalog,
        chat=ChatCompletions(catalog.billing.credits_per_usd, ids=ids),
        ids=ids,
        journal=journal,
        clock=clock,
        operator_workspace=stores.operator_workspace,
    )


def web_limits(settings: Settings) -> WebLimits:
    """What the settings let callers do."""
    return WebLimits(
        allowed_origins=settings.allowed_origins, body_bytes_max=settings.body_bytes_max
    )


def bundled_catalog(settings: Settings) -> Catalog:
    """The compiled routing file that lies beside the code."""
    return Catalog.from_json(settings.catalog_file.read_bytes())


def _aws_json(
    settings: Settings,
    service: JsonService,
    endpoint_url: str | None,
    clock: Clock,
    *,
    timeout_s: float = TIMEOUT_S,
) -> AwsJson:
    region = settings.aws_region
    signer = Signer(service, region, lambda: _local_credentials(settings), clock)
    return AwsJson(
        service,
        region,
        signer,
        clock,
        jitter=IdSource(clock).uniform,
        endpoint_url=endpoint_url,
        timeout_s=timeout_s,
    )


def _local_credentials(settings: Settings) -> Credentials:
    # An emulator checks no credentials, but wants the form of a signature.
    return _credentials(settings) or Credentials("local", "local")


def _objects(settings: Settings, clock: Clock) -> ObjectStore | None:
    if settings.objects_folder is not None:
        return FolderObjects(settings.objects_folder)
    if settings.objects_bucket is None:
        return None
    region = settings.aws_region
    return S3Objects(
        settings.objects_bucket,
        region,
        Signer("s3", region, lambda: _local_credentials(settings), clock),
        endpoint_url=settings.s3_endpoint_url,
    )


def _credentials(settings: Settings) -> Credentials | None:
    if not settings.aws_access_key_id:
        return None
    return Credentials(
        settings.aws_access_key_id, settings.aws_secret_access_key, settings.aws_session_token
    )

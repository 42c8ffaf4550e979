"""Wires the scheduled work: sweeper, maintenance, late uploads, audit, webhooks and canary."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from tollgate.aws.aws_json import AwsJson
from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import IdSource
from tollgate.core.secret import SecretReference
from tollgate.core.shadows import ShadowRun
from tollgate.core.videos import Video
from tollgate.http1.egress import Egress
from tollgate.settings import Settings, environment_variable
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.stores.batches.queue import OpenJobs, find_job_holds
from tollgate.stores.files.late_uploads import LateUploads
from tollgate.stores.keys.writes import KeyWrites
from tollgate.stores.money.alert_channels import AlertWebhook, SnsTopic
from tollgate.stores.money.audit import Audit
from tollgate.stores.money.budgets import AlertChannel, Budgets
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.money.sweeper import Sweeper
from tollgate.stores.money.workspace_maintenance import WorkspaceMaintenance
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.people.pending import PendingLevels
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.records.expired_objects import ExpiredObjects
from tollgate.stores.routing.canary_watch import CanaryWatch
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender
from tollgate.stores.webhooks.rounds import WebhookRounds
from tollgate.wiring.aws import aws_json, signer
from tollgate.wiring.background import wire_background_queue, wire_background_store
from tollgate.wiring.batch_stores import wire_batch_queue, wire_batch_store
from tollgate.wiring.shadows import wire_shadow_store
from tollgate.wiring.stores import Stores
from tollgate.wiring.videos import wire_video_store
from tollgate.wiring.webhook_secrets import wire_sealer


class Upkeep(Struct, frozen=True, kw_only=True):
    """The scheduled work on all workspaces."""

    sweeper: Sweeper
    maintenance: WorkspaceMaintenance
    late_uploads: LateUploads | None
    """None in a deployment without a bucket or a folder."""
    open_batches: OpenJobs[Batch]
    open_background: OpenJobs[BackgroundResponse]
    open_shadows: OpenJobs[ShadowRun]
    open_videos: OpenJobs[Video]
    audit: Audit
    webhooks: WebhookRounds
    canary: CanaryWatch
    secrets: AwsJson

    async def aclose(self) -> None:
        """Close the connections that only scheduled work uses."""
        await self.secrets.close()
        await self.open_batches.aclose()
        await self.open_background.aclose()
        await self.open_shadows.aclose()
        await self.open_videos.aclose()


def wire_upkeep(settings: Settings, stores: Stores, clock: Clock) -> Upkeep:
    """Return the scheduled work over the tables of `stores`."""
    client, tables, wallets = stores.client, stores.tables, stores.wallets
    ids = IdSource(clock)
    workspaces = Workspaces(client, tables, wallets, ids=ids, clock=clock)
    secrets = aws_json(settings, "secretsmanager", settings.secretsmanager_endpoint_url, clock)
    channels = _alert_channels(settings, secrets, clock)
    sealer = wire_sealer(settings, stores.kms, ids)
    sender = EventSender(clock, Egress(), sealer)
    endpoints = DynamoWebhookStore(client, tables, sender, sealer, ids=ids, clock=clock)
    batches, videos = wire_batch_store(stores, clock), wire_video_store(stores, clock)
    responses = wire_background_store(stores, clock)
    budgets = Budgets(client, tables, workspaces, channels, ids=ids, clock=clock)
    return Upkeep(
        sweeper=Sweeper(
            client,
            tables.ledger,
            wallets=wallets,
            keys=stores.key_states,
            generations=stores.generations,
            clock=clock,
            find_waiting=partial(find_job_holds, batches, responses, videos),
        ),
        maintenance=WorkspaceMaintenance(
            client,
            tables,
            wallets=wallets,
            workspaces=workspaces,
            budgets=budgets,
            lots=CreditLots(client, tables, wallets, ids=ids, clock=clock),
            key_writes=KeyWrites(client, tables, ids=ids, clock=clock),
            levels=PendingLevels(client, tables, ids=ids, clock=clock),
            slices=LevelSlices(client, tables, ids=ids, clock=clock),
            ids=ids,
            clock=clock,
        ),
        late_uploads=None if stores.objects is None else LateUploads(stores.objects, clock),
        open_batches=OpenJobs(batches, wire_batch_queue(settings, clock)),
        open_background=OpenJobs(responses, wire_background_queue(settings, clock)),
        open_shadows=OpenJobs(
            wire_shadow_store(stores, clock), wire_background_queue(settings, clock)
        ),
        open_videos=OpenJobs(videos, wire_background_queue(settings, clock)),
        audit=Audit(
            client,
            tables,
            wallets=wallets,
            workspaces=workspaces,
            clock=clock,
            retention_s=settings.record_days * DAY_S,
        ),
        webhooks=WebhookRounds(
            client,
            tables,
            endpoints,
            sender,
            operator_workspace=settings.operator_workspace,
            clock=clock,
        ),
        canary=CanaryWatch(
            stores.publications, workspaces, stores.generations, ids=ids, clock=clock
        ),
        secrets=secrets,
    )


def wire_expired_objects(settings: Settings, stores: Stores, clock: Clock) -> ExpiredObjects | None:
    """Return the removal of expired objects from a folder; None for a bucket, which has lifecycle
    rules.
    """
    if settings.objects_folder is None or stores.objects is None:
        return None
    return ExpiredObjects(stores.objects, clock)


def _alert_channels(settings: Settings, secrets: AwsJson, clock: Clock) -> Sequence[AlertChannel]:
    """Return the channels for budget alerts that the settings name."""
    channels: list[AlertChannel] = []
    if settings.alert_topic_arn:
        url = settings.sns_endpoint_url or f"https://sns.{settings.aws_region}.amazonaws.com"
        channels.append(SnsTopic(settings.alert_topic_arn, signer(settings, "sns", clock), url))
    if settings.alert_webhook_url:
        channels.append(
            AlertWebhook(
                settings.alert_webhook_url,
                SecretReference(secret=settings.alert_webhook_secret),
                AwsSecretStore(secrets, environment_variable, clock),
                clock=clock,
                egress=Egress(),
            )
        )
    return channels

"""Wires generations: providers, the gateway for a catalog, and the app with the metered routes."""

import asyncio
import os
import random
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.types import ASGIApp

from tollgate.aws.aws_json import AwsJson
from tollgate.aws.objects import S3Objects
from tollgate.aws.sigv4 import Signer
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.clock import Clock
from tollgate.core.content import InlineMedia
from tollgate.core.documents.reading import (
    DocumentPage,
    DocumentReader,
    ReadDocument,
    ReadingShare,
    ReadingTask,
    RecognitionFailed,
)
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.engine.gateway import Gateway, Journal, StreamTiming
from tollgate.engine.side_thread import SideThread
from tollgate.http1.egress import Egress
from tollgate.ingress.formats import CHAT_COMPLETIONS, Ingresses
from tollgate.providers.transports.authorization import JobBucket, ProviderServices
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.unread_sections import NO_SECTION, UnreadPlugins
from tollgate.settings import Settings, environment_variable, lambda_runtime_api
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.stores.ports.access_log import AccessLog
from tollgate.stores.ports.base import SecretStore
from tollgate.stores.ports.batches import BackgroundServices, ShadowServices, VideoServices
from tollgate.tools.io.public_fetcher import PublicFetcher
from tollgate.tools.ports.base import RequestTools
from tollgate.web.chat_app import chat_app
from tollgate.web.generation.entrance import Gateways, RequestServices
from tollgate.web.http.cors import WebLimits
from tollgate.wiring.aws import (
    credentials,
    rotating_credentials,
    signer,
    wire_secrets,
)
from tollgate.wiring.providers import CatalogProviders, Registry, wire_registry
from tollgate.wiring.stores import Stores

_ACCESS_LOG: Final = DottedName[Callable[..., AccessLog]](
    "tollgate.stores.records.access_log:DynamoAccessLog"
)
_SEED_BYTES: Final = 32


class Upstream(Struct, frozen=True, kw_only=True):
    """The connections to providers, and the store of the providers' keys."""

    registry: Registry
    pool: HttpPool
    job_bucket: JobBucket | None
    secrets: AwsJson | None
    keys: SecretStore
    region: str
    signer: Callable[[str, str], Signer]
    side: SideThread
    """The thread for long computations, which all catalogs share."""
    buffers: ProcessBuffers
    """The buffer budget of the process, which all catalogs share."""

    async def find_missing_keys(self, catalog: Catalog) -> Mapping[str, CredentialPlace | None]:
        """Return the places where each provider's missing credentials could be set; None if none
        are missing.
        """
        rows = catalog.providers
        places = await asyncio.gather(*map(self.registry.find_missing_key, rows.values()))
        return dict(zip(rows, places, strict=True))

    async def find_missing_tool_keys(self, catalog: Catalog) -> Mapping[str, CredentialPlace]:
        """Return the places where missing keys could be set, by tool or plugin."""
        search, pdf = catalog.tools.section.web_search, catalog.pdf
        keys = {
            "web_search": search.key if search else None,
            "pdf.ocr": pdf.ocr.key if pdf and pdf.ocr else None,
        }
        missing = {}
        for name, key in keys.items():
            if key is not None and not await self._has_key(key.reference):
                missing[name] = self.keys.place(key.reference)
        return missing

    async def _has_key(self, reference: SecretReference) -> bool:
        try:
            return bool(await self.keys.read(reference))
        except LedgerError:
            return False

    async def aclose(self) -> None:
        """Close the connections."""
        await self.pool.close()
        if self.job_bucket is not None:
            await self.job_bucket.objects.close()
        if self.secrets is not None:
            await self.secrets.close()


class FunctionSnapshot(Struct, frozen=True):
    """Implements `lambda_runtime.loop.Snapshot` for the streaming function."""

    settings: Settings
    stores: Stores
    upstream: Upstream

    async def before(self) -> None:
        await self.stores.aclose()
        await self.upstream.aclose()

    async def after(self) -> None:
        # Copies of a snapshot share the random generators that libraries keep in memory. Ids and
        # secrets come from the kernel, which never gives two copies the same bytes. "Handling
        # uniqueness with Lambda SnapStart", AWS Lambda developer guide (2026-11-21)
        random.seed()
        ssl.RAND_add(os.urandom(_SEED_BYTES), _SEED_BYTES)
        credentials = rotating_credentials(self.settings)
        if credentials is not None:
            credentials.forget()
            await credentials.renew()


def wire_upstream(settings: Settings, clock: Clock) -> Upstream:
    """Return the connections to providers; the first use creates each transport and codec."""
    pool = HttpPool()
    secrets = wire_secrets(settings, clock)
    keys = AwsSecretStore(
        secrets,
        environment_variable,
        clock,
        variables=settings.variables,
        region=settings.aws_region,
        prefers_secrets=lambda_runtime_api() is not None,
    )
    job_bucket = _wire_job_bucket(settings, clock)
    services = ProviderServices(
        pool=pool,
        secrets=keys,
        credentials=lambda: credentials(settings),
        aws_region=settings.aws_region,
        google_file=settings.google_file,
        clock=clock,
        job_bucket=job_bucket,
    )
    return Upstream(
        registry=wire_registry(settings, services, clock),
        pool=pool,
        job_bucket=job_bucket,
        secrets=secrets,
        keys=keys,
        region=settings.aws_region,
        signer=lambda service, region: signer(settings, service, clock, region),
        side=SideThread(),
        buffers=ProcessBuffers(
            settings.process_buffer_bytes_max, request_bytes_max=settings.request_buffer_bytes
        ),
    )


def _wire_job_bucket(settings: Settings, clock: Clock) -> JobBucket | None:
    """Return the bucket for batches of Bedrock; None if the settings name no bucket or no role."""
    name, role = settings.objects_bucket, settings.bedrock_batch_role
    if settings.job_region is None or name is None or role is None:
        return None
    objects = S3Objects(
        name,
        settings.job_region,
        signer(settings, "s3", clock),
        endpoint_url=settings.s3_endpoint_url,
    )
    return JobBucket(
        objects=objects,
        name=name,
        url=objects.url,
        region=settings.job_region,
        role=role,
        jobs_url=settings.bedrock_endpoint_url,
    )


def wire_gateway(
    stores: Stores,
    upstream: Upstream,
    catalog: Catalog,
    *,
    clock: Clock,
    journal: Journal,
    reader: DocumentReader | None = None,
) -> Gateway:
    """Return the gateway for one catalog.

    Without a reader, documents are sent to models as they are, and HTML and PDF pages cannot be
    fetched.
    """
    defaults = catalog.defaults
    if reader is None:
        # Without a reader, requests with documents must not be planned for models that cannot read
        # documents.
        catalog = replace(catalog, plugins=UnreadPlugins(NO_SECTION))
    planner, fetcher = Planner(catalog), PublicFetcher(Egress())
    providers = CatalogProviders(catalog, upstream.registry)
    return Gateway(
        ledger=stores.ledger,
        admissions=stores.admissions,
        cooldowns=stores.cooldowns,
        cooldown=defaults.cooldown.policy,
        planner=planner,
        providers=providers,
        media=fetcher,
        clock=clock,
        ids=IdSource(clock),
        journal=journal,
        timing=StreamTiming(
            early_commit_after_s=defaults.early_commit_after_s,
            keep_alive_s=defaults.keep_alive_s,
            non_streamed_total_s=defaults.timeouts.non_streamed_total_s,
        ),
        side=upstream.side,
        buffers=upstream.buffers,
        credits_per_usd=catalog.billing.credits_per_usd,
        admission=catalog.billing.admission,
        answer_cache=stores.answer_cache,
        files=stores.named_files,
        tools=_LaterTools(
            catalog=catalog,
            planner=planner,
            providers=providers,
            upstream=upstream,
            fetcher=fetcher,
            reader=reader,
            clock=clock,
        ),
        reader=reader,
        recognizer=_LaterRecognizer(catalog, upstream),
    )


class _LaterRecognizer(Struct, frozen=True):
    """Implements `core.documents.reading.TextRecognizer` with the OCR engine of a catalog."""

    catalog: Catalog
    upstream: Upstream

    async def recognize(
        self, document: InlineMedia, pages: Sequence[DocumentPage]
    ) -> Mapping[int, str]:
        """Return the text of each page; raise RecognitionFailed if the engine omits a page."""
        # Imported with the first document that needs OCR.
        from tollgate.tools.io.engine_calls import PooledEngineCalls
        from tollgate.tools.recognize import EngineRecognizer

        pdf, upstream = self.catalog.pdf, self.upstream
        if pdf is None or pdf.ocr is None:
            raise RecognitionFailed("no OCR engine is configured")
        engine = EngineRecognizer(
            section=pdf.ocr,
            calls=PooledEngineCalls(upstream.pool),
            secrets=upstream.keys,
            region=upstream.region,
            signer=upstream.signer,
        )
        return await engine.recognize(document, pages)


class _LaterTools(Struct, frozen=True, kw_only=True):
    """Implements `ServerTools`, and imports the tools with the first request for a server tool.

    Most processes run no tools, so their start should not include the import.
    """

    catalog: Catalog
    planner: Planner
    providers: CatalogProviders
    upstream: Upstream
    fetcher: PublicFetcher
    reader: DocumentReader | None
    clock: Clock

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> RequestTools:
        """Return the tools for one request; `route` is the name of its route, or None."""
        # Imported with the first request for a server tool.
        from tollgate.wiring.tools import wire_tools

        tools = wire_tools(
            self.catalog,
            self.planner,
            self.providers,
            pool=self.upstream.pool,
            secrets=self.upstream.keys,
            fetcher=self.fetcher,
            reader=self.reader,
            clock=self.clock,
        )
        return tools.open(request, route=route, principal=principal)


class _InvokedDocuments:
    """Implements `DocumentReader` with the reader function; its client is imported on first use."""

    def __init__(self, function: str, settings: Settings, stores: Stores, clock: Clock) -> None:
        self._function = function
        self._settings = settings
        self._stores = stores
        self._clock = clock
        self._invoked: DocumentReader | None = None

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        """Return the pages of a document; raise UnreadableDocument or ReaderUnavailable."""
        if self._invoked is None:
            # Imported with the first document that the reader function reads.
            from tollgate.stores.documents.invoked_reader import InvokedReader

            settings = self._settings
            self._invoked = InvokedReader(
                self._function,
                settings.aws_region,
                signer(settings, "lambda", self._clock),
                objects=self._stores.objects,
                new_id=IdSource(self._clock).new_id,
                clock=self._clock,
                endpoint_url=settings.lambda_endpoint_url,
                isolates_tenants=settings.reader_isolates_tenants,
            )
        return await self._invoked.read(content, media_type, task, share)


def wire_invoked_reader(settings: Settings, stores: Stores, clock: Clock) -> DocumentReader | None:
    """Return the reader that invokes a function; None if the settings name no function."""
    if settings.reader_function is None:
        return None
    return _InvokedDocuments(settings.reader_function, settings, stores, clock)


def wire_request_services(stores: Stores, *, clock: Clock, journal: Journal) -> RequestServices:
    """Return what every metered request needs."""
    ids = IdSource(clock)
    return RequestServices(
        keys=stores.keys,
        access_log=cache(lambda: _ACCESS_LOG()(stores.client, stores.tables, ids=ids, clock=clock)),
        ingresses=Ingresses(ids),
        clock=clock,
        ids=ids,
        journal=journal,
    )


def wire_chat_app(
    stores: Stores,
    gateways: Gateways,
    limits: WebLimits,
    *,
    background: Callable[[], BackgroundServices | None],
    shadows: Callable[[], ShadowServices | None],
    videos: Callable[[], VideoServices | None],
    clock: Clock,
    journal: Journal,
) -> ASGIApp:
    """Return the app with the metered routes; the first request that needs them makes the stores of
    `background` responses, `shadows` and `videos`.
    """
    front = wire_request_services(stores, clock=clock, journal=journal)
    # Most requests use this format, so the start imports its modules.
    _ = front.ingresses[CHAT_COMPLETIONS.name]
    return chat_app(
        front,
        gateways,
        limits,
        answers=stores.answers,
        contents=stores.contents,
        responses=stores.responses,
        seals=stores.seal_keys,
        background=cache(background),
        shadows=cache(shadows),
        videos=cache(videos),
    )

"""Wires the journal, the hooks for requests and the limits on callers, for all HTTP functions."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, field
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.secret import SecretReference
from tollgate.engine.gateway import Journal
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import LogJournal
from tollgate.settings import Settings, environment_variable
from tollgate.web.http.cors import WebLimits
from tollgate.wiring.aws import aws_json, rotating_credentials

_Hook = Callable[[], Awaitable[None]]


class Observation(Struct, frozen=True, kw_only=True):
    """A journal, with hooks that flush it after each reply and hooks that close it at the end."""

    journal: Journal
    after: tuple[_Hook, ...] = ()
    closing: tuple[_Hook, ...] = field(default=())

    async def aclose(self) -> None:
        """Flush the journal and close its connections."""
        for hook in (*self.after, *self.closing):
            await hook()


def wire_observation(settings: Settings, clock: Clock) -> Observation:
    """Return the journal: a log, and spans to a collector if the settings name one."""
    log = LogJournal(EmbeddedMetrics(settings.metrics_namespace, clock))
    if settings.otlp_endpoint_url is None:
        return Observation(journal=log)
    # Imported here because most functions have no collector.
    from tollgate.observability.otlp import OtlpCollector, SpanJournal
    from tollgate.stores.aws.secrets import AwsSecretStore

    client = aws_json(settings, "secretsmanager", settings.secretsmanager_endpoint_url, clock)
    secrets = AwsSecretStore(client, environment_variable, clock)
    name = settings.otlp_headers_secret
    headers = SecretReference(secret=name) if name else None
    collector = OtlpCollector(settings.otlp_endpoint_url, secrets, headers)
    spans = SpanJournal(log, collector, clock, IdSource(clock), content=settings.otlp_content)
    return Observation(journal=spans, after=(spans.flush,), closing=(collector.close,))


def add_request_hooks(app: ASGIApp, settings: Settings, observation: Observation) -> ASGIApp:
    """Return the app with hooks for each request, or unchanged if there are no hooks."""
    credentials = rotating_credentials(settings)
    before = (credentials.renew,) if credentials else ()
    if not before and not observation.after:
        return app
    return _RequestHooks(app, before=before, after=observation.after)


class _RequestHooks:
    """Middleware that runs hooks around each request.

    The `after` hooks begin when the last byte has been sent, so that no client waits for them.
    """

    def __init__(
        self, app: ASGIApp, *, before: Sequence[_Hook] = (), after: Sequence[_Hook] = ()
    ) -> None:
        self._app = app
        self._before = before
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for hook in self._before:
            await hook()
        try:
            await self._app(scope, receive, send)
        finally:
            for hook in self._after:
                await hook()


def wire_web_limits(settings: Settings) -> WebLimits:
    """Return the limits on callers that the settings define."""
    return WebLimits(
        allowed_origins=settings.allowed_origins,
        body_bytes_max=settings.body_bytes_max,
        trusted_proxies=settings.trusted_proxies,
        unknown_caller_rpm=settings.unknown_caller_rpm,
    )

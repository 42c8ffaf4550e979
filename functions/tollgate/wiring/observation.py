"""Wires the journal: always a log, and spans to a collector if the settings name one."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, field
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.clock import Clock
from tollgate.engine.gateway import Journal
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import LogJournal
from tollgate.settings import Settings
from tollgate.wiring.aws import rotating_credentials

_Hook = Callable[[], Awaitable[None]]


class Observation(Struct, frozen=True, kw_only=True):
    """A journal, the hooks that flush the journal after each reply, and those that close it."""

    journal: Journal
    after: tuple[_Hook, ...] = ()
    closing: tuple[_Hook, ...] = field(default=())

    async def aclose(self) -> None:
        """Flush the journal and close its connections."""
        for hook in (*self.after, *self.closing):
            await hook()


def wire_observation(
    settings: Settings, clock: Clock, journal: Journal | None = None
) -> Observation:
    """Return the journal, over the log or over another journal."""
    inner = journal or LogJournal(EmbeddedMetrics(settings.metrics_namespace, clock))
    if settings.otlp_endpoint_url is None:
        return Observation(journal=inner)
    # Imported here because most functions have no collector.
    from tollgate.wiring.telemetry import wire_collector

    collector, spans = wire_collector(settings, clock, inner)
    return Observation(journal=spans, after=(spans.flush,), closing=(collector.close,))


def add_request_hooks(app: ASGIApp, settings: Settings, observation: Observation) -> ASGIApp:
    """Wrap the app in hooks for each request; return the app unchanged if there are none."""
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

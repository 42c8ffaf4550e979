"""Wires the journal: always a log, and spans to a collector if the settings name one."""

from collections.abc import Awaitable, Callable

from msgspec import Struct, field
from starlette.types import ASGIApp

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
    # Imported only if requests renew credentials or flush spans.
    from tollgate.web.http.request_hooks import RequestHooks

    return RequestHooks(app, before=before, after=observation.after)

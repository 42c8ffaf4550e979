"""How it is told what was done: to the log always, to a collector where there is one."""

from collections.abc import Awaitable, Callable

from msgspec import Struct, field
from starlette.types import ASGIApp

from tollgate.core.clock import Clock
from tollgate.engine.gateway import Journal
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import LogJournal
from tollgate.settings import Settings
from tollgate.wiring.aws import rotating_credentials

Hook = Callable[[], Awaitable[None]]


class Observation(Struct, frozen=True, kw_only=True):
    """A journal, what is to be done after each answer, and once more at the end."""

    journal: Journal
    after: tuple[Hook, ...] = ()
    closing: tuple[Hook, ...] = field(default=())

    async def aclose(self) -> None:
        """Tell what is still to be told, and close the connections."""
        for chore in (*self.after, *self.closing):
            await chore()


def wire_observation(
    settings: Settings, clock: Clock, journal: Journal | None = None
) -> Observation:
    """Over the log, or over another journal."""
    inner = journal or LogJournal(EmbeddedMetrics(settings.metrics_namespace, clock))
    if settings.otlp_endpoint_url is None:
        return Observation(journal=inner)
    # Most functions have no collector, and start without this.
    from tollgate.wiring.telemetry import wire_collector

    collector, spans = wire_collector(settings, clock, inner)
    return Observation(journal=spans, after=(spans.flush,), closing=(collector.close,))


def with_request_chores(app: ASGIApp, settings: Settings, observation: Observation) -> ASGIApp:
    """The app with what is done around each of its requests, itself where nothing is."""
    credentials = rotating_credentials(settings)
    before = (credentials.renew,) if credentials else ()
    if not before and not observation.after:
        return app
    from tollgate.web.request_hooks import RequestHooks

    return RequestHooks(app, before=before, after=observation.after)

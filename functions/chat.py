"""Lambda entry point for streamed answers; `stream_bootstrap` starts it in place of Lambda's
runtime client.
"""

import gc

# Imports leave no garbage, but collecting it would take an eighth of a cold start. `main` enables
# the collector again.
gc.disable()
import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp

from tollgate.core.clock import SystemClock
from tollgate.core.dotted_names import DottedName
from tollgate.engine.gateway import Gateway
from tollgate.lambda_runtime.loop import Snapshot, report_init_error, run_loop
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings, lambda_runtime_api
from tollgate.stores.ports.batches import BackgroundServices, ShadowServices, VideoServices
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.generation import (
    FunctionSnapshot,
    wire_chat_app,
    wire_gateway,
    wire_invoked_reader,
    wire_upstream,
)
from tollgate.wiring.observation import add_request_hooks, wire_observation, wire_web_limits
from tollgate.wiring.stores import wire_stores

# Imported with the first background response, the first request on a route with a shadow, and the
# first video.
_WIRE_BACKGROUND: Final = DottedName[Callable[..., BackgroundServices | None]](
    "tollgate.wiring.background:wire_queued_background"
)
_WIRE_SHADOWS: Final = DottedName[Callable[..., ShadowServices]](
    "tollgate.wiring.shadows:wire_queued_shadows"
)
_WIRE_VIDEOS: Final = DottedName[Callable[..., VideoServices | None]](
    "tollgate.wiring.videos:wire_queued_videos"
)


class Function(Struct, frozen=True):
    """The app that serves the metered routes, and its snapshot hooks (None without SnapStart)."""

    app: ASGIApp
    snapshot: Snapshot | None


def wire_function(settings: Settings) -> Function:
    """Return the app and hooks that these settings describe."""
    clock = SystemClock()
    observation = wire_observation(settings, clock)
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)
    reader = wire_invoked_reader(settings, stores, clock)

    def gateway(catalog: Catalog) -> Gateway:
        return wire_gateway(
            stores, upstream, catalog, clock=clock, journal=observation.journal, reader=reader
        )

    gateways = wire_catalog_follower(
        settings,
        stores.publications,
        gateway,
        as_candidate=Gateway.as_candidate,
        clock=clock,
        journal=observation.journal,
    )
    app = add_request_hooks(
        wire_chat_app(
            stores,
            gateways,
            wire_web_limits(settings),
            background=lambda: _WIRE_BACKGROUND()(settings, stores, clock),
            shadows=lambda: _WIRE_SHADOWS()(settings, stores, clock),
            videos=lambda: _WIRE_VIDEOS()(settings, stores, clock),
            clock=clock,
            journal=observation.journal,
        ),
        settings,
        observation,
    )
    if settings.initialization_type != "snap-start":
        return Function(app, None)
    return Function(app, FunctionSnapshot(settings, stores, upstream))


def main() -> None:
    """Answer invocations until Lambda ends the process."""
    configure_logging()
    runtime_api = lambda_runtime_api()
    if runtime_api is None:
        raise SystemExit("chat.py runs on Lambda; `tollgate serve` serves the same app elsewhere")
    try:
        settings = Settings()
        function = wire_function(settings)
    except Exception as error:
        asyncio.run(report_init_error(runtime_api, error))
        raise SystemExit(1) from error
    # Objects from the start are never freed, so that later collections need not traverse them.
    gc.freeze()
    gc.enable()
    asyncio.run(
        run_loop(
            function.app,
            runtime_api,
            snapshot=function.snapshot,
            invocations_max=settings.invocations_max,
        )
    )


if __name__ == "__main__":
    main()

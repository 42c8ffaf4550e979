"""The streaming function: started by `stream_bootstrap` in place of Lambda's runtime client."""

import gc

# Imports make no garbage, and looking for it takes an eighth of a cold start; `main` enables it.
gc.disable()

import asyncio

from msgspec import Struct
from starlette.types import ASGIApp

from tollgate.core.clock import SystemClock
from tollgate.engine.gateway import Gateway
from tollgate.lambda_runtime.loop import Snapshot, report_init_error, run_loop
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings, lambda_runtime_api
from tollgate.wiring.catalog import wire_following
from tollgate.wiring.generation import wire_chat_app, wire_gateway, wire_upstream
from tollgate.wiring.limits import web_limits
from tollgate.wiring.observation import wire_observation, with_request_chores
from tollgate.wiring.stores import wire_stores


class Function(Struct, frozen=True):
    """The metered routes over the published catalog, and what a snapshot of them must not hold."""

    app: ASGIApp
    snapshot: Snapshot | None


def wired(settings: Settings) -> Function:
    """The function as its settings say."""
    clock = SystemClock()
    observation = wire_observation(settings, clock)
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)

    def gateway(catalog: Catalog) -> Gateway:
        return wire_gateway(stores, upstream, catalog, clock=clock, journal=observation.journal)

    gateways = wire_following(
        settings, stores.publications, gateway, clock=clock, journal=observation.journal
    )
    app = with_request_chores(
        wire_chat_app(
            stores, gateways, web_limits(settings), clock=clock, journal=observation.journal
        ),
        settings,
        observation,
    )
    if settings.initialization_type != "snap-start":
        return Function(app, None)
    # Imported where a snapshot is taken: the others start without it.
    from tollgate.wiring.snapshot import FunctionSnapshot

    return Function(app, FunctionSnapshot(settings, stores, upstream))


def main() -> None:
    """Answer invocations until Lambda ends the process."""
    configure_logging()
    runtime_api = lambda_runtime_api()
    if runtime_api is None:
        raise SystemExit("chat.py runs on Lambda; `tollgate serve` serves the same app elsewhere")
    try:
        function = wired(Settings())
    except Exception as error:
        asyncio.run(report_init_error(runtime_api, error))
        raise SystemExit(1) from error
    # What is there now stays: a collection need not walk it again and again.
    gc.freeze()
    gc.enable()
    asyncio.run(run_loop(function.app, runtime_api, snapshot=function.snapshot))


if __name__ == "__main__":
    main()

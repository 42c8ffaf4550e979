"""The streaming function: started by `stream_bootstrap` in place of Lambda's runtime client."""

import asyncio

from starlette.types import ASGIApp

from tollgate.core.clock import SystemClock
from tollgate.lambda_runtime.loop import report_init_error, serve
from tollgate.observability.log import LogJournal, configure_logging
from tollgate.settings import Settings, lambda_runtime_api
from tollgate.wiring.catalog import bundled_catalog
from tollgate.wiring.generation import wire_chat_app, wire_gateway, wire_upstream
from tollgate.wiring.limits import web_limits
from tollgate.wiring.stores import wire_stores


def app(settings: Settings) -> ASGIApp:
    """The metered routes over the bundled catalog."""
    clock = SystemClock()
    stores = wire_stores(settings, clock)
    gateway = wire_gateway(
        stores,
        wire_upstream(settings, clock),
        bundled_catalog(settings),
        clock=clock,
        journal=LogJournal(),
    )
    return wire_chat_app(gateway, stores, web_limits(settings))


def main() -> None:
    """Answer invocations until Lambda ends the process."""
    configure_logging()
    runtime_api = lambda_runtime_api()
    if runtime_api is None:
        raise SystemExit("chat.py runs on Lambda; `tollgate dev` serves the same app locally")
    try:
        wired = app(Settings())
    except Exception as error:
        asyncio.run(report_init_error(runtime_api, error))
        raise SystemExit(1) from error
    asyncio.run(serve(wired, runtime_api))


if __name__ == "__main__":
    main()

"""The whole gateway of `tollgate dev`, without AWS and provider keys."""

import asyncio
import contextlib
import json
import logging
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import click

from tollgate.cli.options import utc_today
from tollgate.cli.server.batch_work import working_on_jobs
from tollgate.cli.server.connections import GuardedListener
from tollgate.cli.server.dev_journal import TerminalJournal
from tollgate.cli.server.local_models import LocalModels, describe_local_models
from tollgate.cli.server.measured_app import MeasuredApp, MetricsAccess
from tollgate.cli.server.metrics import MeasuringJournal, ServerMetrics
from tollgate.cli.server.ministack import Ministack
from tollgate.cli.server.reload import Reloaded, RoutingSource
from tollgate.cli.server.seed import LocalKeys, seed
from tollgate.cli.server.server import Server, listen_on, stop_on_signals
from tollgate.cli.server.upkeep import roll_up, sweep
from tollgate.core.clock import Clock, SystemClock
from tollgate.core.errors import GatewayError, LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.secret import CredentialPlace, describe_remedy
from tollgate.engine.gateway import Gateway
from tollgate.installation import is_checkout
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.sign_in.configuration import InvalidSignIn
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.item_versions import claim_store
from tollgate.wiring.jobs import wire_job_pollings
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.whole import wire_local_reader, wire_whole_app

_log = logging.getLogger(__name__)

_START_S: Final = 20.0
# Interval of the sweeper in a deployed stack.
_ROUNDS_S: Final = 300.0
_STOP_S: Final = 1
_EXAMPLE: Final = "test/echo"
_EXPORTS_MAX: Final = 9
# Maximum number of providers to name on the line of a variable that they share.
_SLUGS_MAX: Final = 3
_OTHER_PORT: Final = "`make run DEV='--port {}'`" if is_checkout() else "`tollgate dev --port {}`"


def serve_locally(store: Ministack, *, routing: Path, port: int, ready_file: Path | None) -> None:
    """Serve a routing file on localhost with the tables of a store, until Ctrl-C."""
    source = RoutingSource(routing, LocalModels(port, utc_today()).added_to)
    try:
        catalog = source.read()
    except InvalidRouting as invalid:
        raise click.ClickException(str(invalid)) from invalid
    with listen_on("127.0.0.1", port, other_port=_OTHER_PORT) as listener:
        try:
            asyncio.run(_serve(source, catalog, listener, store=store, ready_file=ready_file))
        except InvalidSignIn as invalid:
            raise click.ClickException(f"The sign-in file cannot be served: {invalid}") from invalid
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)


async def _serve(
    source: RoutingSource,
    catalog: Catalog,
    listener: GuardedListener,
    *,
    store: Ministack,
    ready_file: Path | None,
) -> None:
    clock, metrics = SystemClock(), ServerMetrics()
    journal = MeasuringJournal(TerminalJournal(), metrics)
    settings = Settings(dynamodb_endpoint_url=store.url, objects_folder=store.state / "objects")
    stores = wire_stores(settings, clock)
    upstream = wire_upstream(settings, clock)
    async with contextlib.aclosing(stores), contextlib.aclosing(upstream):
        reader = wire_local_reader()

        def gateway(catalog: Catalog) -> Gateway:
            return wire_gateway(
                stores, upstream, catalog, clock=clock, journal=journal, reader=reader
            )

        gateways = Reloaded(catalog, gateway)
        catalogs = Reloaded(catalog, lambda catalog: catalog)
        files = wire_files(settings, stores, clock)
        jobs = wire_job_pollings(settings, stores, files, gateways, clock=clock, journal=journal)
        app = wire_whole_app(
            settings,
            stores,
            gateways,
            catalogs,
            upstream=upstream,
            files=files,
            jobs=jobs,
            clock=clock,
            journal=journal,
        )
        app = MeasuredApp(app, metrics, MetricsAccess(loopback=True))
        # The app is wired while the store starts, which takes as long.
        await _wait_for_store(stores, clock, store)
        try:
            await claim_store(stores)
        except LedgerError as failure:
            raise click.ClickException(failure.message) from failure
        administration = wire_administration(settings, stores, clock)
        keys = await seed(administration.keys, administration.credits, store.state)
        server = Server(app, listener, ids=IdSource(clock), drain_s=_STOP_S)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        background = (
            asyncio.create_task(source.watch(clock, (gateways.replace, catalogs.replace))),
            asyncio.create_task(_keep_up(settings, stores, clock)),
        )
        providers = describe_providers(await upstream.find_missing_keys(catalog), catalog)
        providers += describe_local_models(catalog)
        providers += describe_tools(await upstream.find_missing_tool_keys(catalog))
        async with AsyncExitStack() as stack:
            stack.enter_context(stop_on_signals(server))
            await stack.enter_async_context(working_on_jobs(jobs.each, _STOP_S))
            if ready_file is not None:
                _write_ready_file(ready_file, f"{_host(listener)}/api/v1", keys)
            _announce(catalog, store, listener, keys=keys, providers=providers)
            await serving
        for task in background:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await server.until_settled()


async def _keep_up(settings: Settings, stores: Stores, clock: Clock) -> None:
    """Run the work of a stack's scheduled functions every five minutes, forever."""
    while True:
        for work in (sweep, roll_up):
            try:
                await work(settings, stores)
            except GatewayError as failure:
                _log.warning("scheduled work failed: %s", failure.message)
        await clock.sleep(_ROUNDS_S)


async def _wait_for_store(stores: Stores, clock: Clock, store: Ministack) -> None:
    give_up_s = clock.monotonic_s() + _START_S
    while True:
        store.raise_if_stopped()
        try:
            await stores.create_tables()
        except LedgerError as failure:
            if clock.monotonic_s() > give_up_s:
                raise click.ClickException(f"ministack does not answer: {failure}") from failure
            await clock.sleep(0.05)
        else:
            return


def _announce(
    catalog: Catalog,
    store: Ministack,
    listener: GuardedListener,
    *,
    keys: LocalKeys,
    providers: str,
) -> None:
    click.echo(
        _WELCOME.format(
            models=len(catalog.models),
            model=_EXAMPLE if _EXAMPLE in catalog.models else min(catalog.models, default=_EXAMPLE),
            sha=catalog.sha[:7],
            state=store.state,
            host=_host(listener),
            key=keys.inference,
            management_key=keys.management,
            providers=providers,
        )
    )


def _write_ready_file(ready_file: Path, base_url: str, keys: LocalKeys) -> None:
    ready = {
        "base_url": base_url,
        "key": keys.inference,
        "management_key": keys.management,
        "pid": os.getpid(),
    }
    written = ready_file.with_suffix(".part")
    written.unlink(missing_ok=True)
    # The file contains keys, so other users must never be able to read it.
    handle = os.open(written, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(ready, file)
    written.replace(ready_file)


def _host(listener: GuardedListener) -> str:
    return f"http://localhost:{listener.getsockname()[1]}"


def describe_tools(places: Mapping[str, CredentialPlace]) -> str:
    """Return a line for each server tool without a key, with the remedy."""
    return "".join(
        f"\n  {name:<15} without its key: {describe_remedy((credential,))}"
        for name, credential in places.items()
    )


def describe_providers(places: Mapping[str, CredentialPlace | None], catalog: Catalog) -> str:
    """Return lines that list the usable providers, and an `export` for each other provider;
    providers with the most models come first.
    """
    offers = Counter(
        endpoint.provider for model in catalog.models.values() for endpoint in model.endpoints
    )
    places = dict(sorted(places.items(), key=lambda each: -offers[each[0]]))
    usable = ", ".join(slug for slug, credential in places.items() if credential is None)
    lines = [f"  usable here     {usable or 'no provider'}"]
    missing: dict[tuple[str, ...], list[str]] = {}
    for slug, credential in places.items():
        if credential is not None:
            missing.setdefault(credential.variables, []).append(slug)
    without_variable = missing.pop((), None)
    if without_variable:
        lines.append(f"  not usable      {', '.join(without_variable)}: no variable is named")
    if missing:
        lines.append("  without a key   the others; export one, then start again:")
        # Each variable has its own line, even if a provider needs several variables.
        exports = [
            (f"{name}=...", _first(slugs)) for names, slugs in missing.items() for name in names
        ]
        shown, hidden = exports[:_EXPORTS_MAX], exports[_EXPORTS_MAX:]
        width = max(len(setting) for setting, _ in shown)
        lines += [f"    export {setting:<{width}}  # {slugs}" for setting, slugs in shown]
        if hidden:
            lines.append(f"    and {len(hidden)} more; the error of a request names its variable")
    return "\n".join(lines)


def _first(slugs: list[str]) -> str:
    """Return the first providers, and the number of the others."""
    shown, others = slugs[:_SLUGS_MAX], slugs[_SLUGS_MAX:]
    return ", ".join(shown) + (f" and {len(others)} more" if others else "")


# The text to copy comes last, so that a screen of 24 lines shows it. Anthropic's SDKs and Claude
# Code add /v1 to their base URL.
_WELCOME: Final = """\
Tollgate serves {models} models (catalog {sha}); its state is in {state}/.

{providers}

  console         {host}/console
  OpenAI's SDKs   {host}/api/v1
  Anthropic's     {host}/api
  inference key   {key}
  management key  {management_key}

  curl -N {host}/api/v1/chat/completions \\
    -H 'authorization: Bearer {key}' \\
    -H 'content-type: application/json' \\
    -d '{{"model": "{model}", "stream": true,
         "messages": [{{"role": "user", "content": "Hello!"}}]}}'

The command in another terminal, for instance `tollgate spend`:
  export TOLLGATE_URL={host}/api/v1
  export TOLLGATE_KEY={management_key}

Ctrl-C stops it.
"""

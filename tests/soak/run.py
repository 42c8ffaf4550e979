"""One soak: two processes over one store, a load, the faults of a plan, and the verdicts."""

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import aiohttp

from tests.soak.accounts import (
    POOR,
    POOR_GRANT_NANO_USD,
    SoakKey,
    open_accounts,
    server_environment,
    write_catalog,
)
from tests.soak.books import check_books, open_books, sweep_books
from tests.soak.callers import Callers, Told
from tests.soak.criteria import (
    Bounds,
    Minute,
    Sample,
    Verdict,
    judge_books,
    judge_latency,
    judge_processes,
)
from tests.soak.plan import FaultWindow, Plan, deal_faults, is_calm
from tests.soak.provider import SoakProvider
from tests.soak.servers import SoakServer
from tests.soak.store_proxy import StoreProxy
from tests.stores import TESTER
from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.settings import Settings
from tollgate.wiring.administration import Administration, wire_administration

PROCESSES: Final = 2
# The one that is killed; the other lives until the end.
_MORTAL: Final = 1
_IN_FLIGHT_MAX: Final = 1_000
_THROTTLED: Final = 0.3
_GRANT_EVERY_S: Final = 60.0
_REST_MAX_S: Final = 15.0


@dataclass(kw_only=True)
class Stage:
    """Everything that a soak runs on, started."""

    settings: Settings
    proxy: StoreProxy
    provider: SoakProvider
    servers: Sequence[SoakServer]
    administration: Administration
    keys: Sequence[SoakKey]
    http: aiohttp.ClientSession


@dataclass(kw_only=True)
class SoakFindings:
    """What a soak measured; moments are seconds from its beginning."""

    plan: Plan
    # As they happened: a killed process is away until it answers again.
    faults: list[FaultWindow] = field(default_factory=list)
    began_s: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    first: Sequence[Sample] = ()
    at_rest: list[Sample] = field(default_factory=list)
    told: Sequence[Told] = ()
    minutes: Sequence[Minute] = ()
    counts: Counter[str] = field(default_factory=Counter)
    violations: Sequence[str] = ()

    def verdicts(self, bounds: Bounds) -> list[Verdict]:
        """Return every criterion with what was measured."""
        return [
            *judge_processes(self.samples, self.first, self.at_rest, bounds),
            *judge_latency(self.minutes, bounds),
            judge_books(self.violations),
        ]


@asynccontextmanager
async def staged(
    ministack_url: str, folder: Path, seed: int, *, processes: int = PROCESSES
) -> AsyncIterator[Stage]:
    """Start the provider, the proxy and the servers over tables of their own."""
    name = os.urandom(6).hex()
    settings = Settings(
        core_table=f"{name}-core",
        ledger_table=f"{name}-ledger",
        generations_table=f"{name}-generations",
        catalog_file=folder / "routing.json",
        dynamodb_endpoint_url=ministack_url,
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(SoakProvider(seed))
        proxy = await stack.enter_async_context(StoreProxy(ministack_url, seed))
        write_catalog(settings.catalog_file, provider.url)
        stores = await stack.enter_async_context(aclosing(open_books(settings)))
        await stores.create_tables()
        administration = wire_administration(settings, stores, SystemClock())
        keys = await open_accounts(administration)
        http = await stack.enter_async_context(open_client())
        variables = server_environment(settings, store_url=proxy.url, folder=folder / "objects")
        servers = [
            SoakServer(number=number, variables=variables, log_file=folder / f"serve-{number}.log")
            for number in range(processes)
        ]
        for server in servers:
            stack.push_async_callback(server.stop)
        await asyncio.gather(*(server.start(http) for server in servers))
        yield Stage(
            settings=settings,
            proxy=proxy,
            provider=provider,
            servers=servers,
            administration=administration,
            keys=keys,
            http=http,
        )


def open_client() -> aiohttp.ClientSession:
    """Open a client that keeps as many connections as it needs, and waits for ever."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    )


async def soak(stage: Stage, plan: Plan) -> SoakFindings:
    """Run a plan to its end, and check the books."""
    findings = SoakFindings(plan=plan)
    findings.first = await _sample(stage, 0.0)
    callers = Callers(stage.keys, random.Random(plan.seed))
    findings.began_s = time.monotonic()
    done = asyncio.Event()
    around = [
        asyncio.create_task(_sampled(stage, findings, done)),
        asyncio.create_task(_swept(stage, findings, done)),
        asyncio.create_task(_granted(stage, findings, done)),
        *(asyncio.create_task(_happen(stage, findings, fault)) for fault in deal_faults(plan)),
    ]
    # The connections of callers end with them, those of the watcher go on.
    async with open_client() as http:
        await _load(stage, http, callers, findings)
    done.set()
    await asyncio.gather(*around)
    findings.told = callers.told
    findings.at_rest += await _rested(stage, findings)
    await stage.proxy.all_delivered()
    findings.minutes = _minutes(stage, findings)
    findings.counts.update(f"told {it.ending}" for it in findings.told)
    findings.counts.update(f"{it.status} {it.code}" for it in findings.told if it.code)
    findings.counts.update({f"provider {it}": n for it, n in stage.provider.counts.items()})
    findings.counts.update({f"store {it}": n for it, n in stage.proxy.counts.items()})
    calm = _calm_ids(findings)
    findings.counts["delivered in calm"] = len(calm)
    findings.violations = await check_books(
        stage.settings, findings.told, findings.counts, calm=calm
    )
    return findings


async def _load(
    stage: Stage, http: aiohttp.ClientSession, callers: Callers, findings: SoakFindings
) -> None:
    """Send requests at a steady rate, however long answers take."""
    plan, under_way = findings.plan, set[asyncio.Task[None]]()
    for number in itertools.count():
        due_s = findings.began_s + number / plan.requests_per_second
        if due_s > findings.began_s + plan.seconds:
            break
        await asyncio.sleep(due_s - time.monotonic())
        if len(under_way) >= _IN_FLIGHT_MAX:
            findings.counts["not sent"] += 1
            continue
        server = stage.servers[number % len(stage.servers)]
        task = asyncio.create_task(callers.send(http, server.url, server.number, callers.next()))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def _happen(stage: Stage, findings: SoakFindings, fault: FaultWindow) -> None:
    """Let a fault happen in its time."""

    async def wait_until(at_s: float) -> None:
        await asyncio.sleep(findings.began_s + at_s - time.monotonic())

    await wait_until(fault.begins_s)
    findings.counts[f"fault {fault.kind}"] += 1
    match fault.kind:
        case "killed":
            await stage.servers[_MORTAL].kill()
            await stage.servers[_MORTAL].start(stage.http)
        case "frozen":
            stage.proxy.freeze()
            await wait_until(fault.ends_s)
            stage.proxy.thaw()
        case "throttled":
            stage.proxy.throttled = _THROTTLED
            await wait_until(fault.ends_s)
            stage.proxy.throttled = 0.0
        case "outage":
            stage.provider.outage = True
            await wait_until(fault.ends_s)
            stage.provider.outage = False
    findings.faults.append(replace(fault, ends_s=time.monotonic() - findings.began_s))


async def _sampled(stage: Stage, findings: SoakFindings, done: asyncio.Event) -> None:
    while not await _waited(done, findings.plan.sample_every_s):
        findings.samples += await _sample(stage, time.monotonic() - findings.began_s)


async def _swept(stage: Stage, findings: SoakFindings, done: asyncio.Event) -> None:
    """Sweep as a schedule does, through the faults of the store."""
    faulty = stage.settings.model_copy(update={"dynamodb_endpoint_url": stage.proxy.url})
    while not await _waited(done, findings.plan.sweep_every_s):
        try:
            report = await sweep_books(faulty)
        except GatewayError:
            findings.counts["sweeps that failed"] += 1
        else:
            findings.counts["holds swept meanwhile"] += report.settled
            findings.counts["sweeps"] += 1


async def _granted(stage: Stage, findings: SoakFindings, done: asyncio.Event) -> None:
    """Let the poor workspace go on being poor."""
    while not await _waited(done, _GRANT_EVERY_S):
        with suppress(GatewayError):
            await stage.administration.credits.grant(
                POOR, os.urandom(8).hex(), POOR_GRANT_NANO_USD, "soak", by=TESTER
            )
            findings.counts["grants"] += 1


async def _waited(done: asyncio.Event, seconds: float) -> bool:
    """Wait so long, or until all is done; return whether it is."""
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), seconds)
    return done.is_set()


async def _sample(stage: Stage, at_s: float) -> list[Sample]:
    samples = await asyncio.gather(*(it.sample(stage.http, at_s) for it in stage.servers))
    return [it for it in samples if it is not None]


async def _rested(stage: Stage, findings: SoakFindings) -> Sequence[Sample]:
    """Return what processes use once they have nothing to do.

    A busy machine takes longer to end what callers have left; for a leak, all waiting is in vain.
    """
    await asyncio.sleep(findings.plan.rest_s)
    gives_up_s = time.monotonic() + _REST_MAX_S
    base = {it.server: it.tasks for it in findings.first}
    while True:
        samples = await _sample(stage, time.monotonic() - findings.began_s)
        quiet = all(it.tasks <= base[it.server] and not it.in_flight for it in samples)
        if quiet or time.monotonic() > gives_up_s:
            return samples
        await asyncio.sleep(0.5)


def _is_calm(findings: SoakFindings, told: Told, faults: Sequence[FaultWindow]) -> bool:
    begins_s, ends_s = told.sent_s - findings.began_s, told.ended_s - findings.began_s
    return is_calm(faults, begins_s, ends_s, findings.plan.aftermath_s)


def _calm_ids(findings: SoakFindings) -> frozenset[str]:
    """Return the generations that were delivered while nothing kept them from settling.

    The provider's own faults keep none, nor does the end of the other process.
    """
    of_store = [it for it in findings.faults if it.kind in ("frozen", "throttled")]
    of_mortal = [*of_store, *(it for it in findings.faults if it.kind == "killed")]
    return frozenset(
        it.generation_id
        for it in findings.told
        if it.ending == "delivered"
        and _is_calm(findings, it, of_mortal if it.server == _MORTAL else of_store)
    )


def _minutes(stage: Stage, findings: SoakFindings) -> list[Minute]:
    """Return what the gateway added, minute by minute, where no fault had any effect."""
    plan = findings.plan
    by_number: dict[int, list[float]] = {}
    for it in findings.told:
        added_ms = it.added_ms(stage.provider.arrivals)
        if added_ms is not None and _is_calm(findings, it, findings.faults):
            begins_s = it.sent_s - findings.began_s
            by_number.setdefault(int(begins_s / plan.minute_s), []).append(added_ms)
    return [Minute(number=it, added_ms=by_number[it]) for it in sorted(by_number)]

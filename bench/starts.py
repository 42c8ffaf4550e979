"""Measurement of the streaming function on the Lambda emulator: cold starts, and memory."""

import contextlib
import io
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from urllib.parse import urlsplit

from tests.deployed_functions import CHAT_ROUTES
from tests.deployment import (
    environment,
)
from tests.emulator import Emulator
from tests.emulator.process import EXEC_WRAPPER
from tests.ministack import running_ministack

from bench.children import TOP, Child, child, environment_of
from bench.figures import Row
from bench.load import Question, ask
from bench.upstream import SHORT_CHUNKS
from tollgate.settings import Settings

_IMPORT_FLOOR = "import starlette.applications, pydantic, pydantic_settings, aiohttp"
_REQUESTS = 1000
_STAGING = Path(__file__).with_name("stage.py")


@dataclass(frozen=True)
class Stage:
    """A checkout, with a store, a catalog and a key for its function."""

    tree: Path
    settings: Settings
    key: str


@dataclass(frozen=True, kw_only=True)
class Start:
    """The seconds of one cold start of each kind, measured one after another."""

    imports_s: float
    sse_s: float
    bedrock_s: float


async def measure_starts(runs: int) -> list[Row]:
    """Return the table lines for cold starts and memory. Each start is a fresh process."""
    async with open_stage() as stage:
        taken = [await _starts(stage) for _ in range(runs + 1)]
        # The first start writes bytecode and fills the page cache, so it is not counted.
        floors_s, sse_s, bedrock_s = zip(*map(astuple, taken[1:]), strict=True)
        return [
            _start_row("SSE", sse_s, floors_s, target=1.3),
            _start_row("Bedrock", bedrock_s, floors_s, target=1.5),
            await _memory_row(stage),
        ]


async def compare_starts(other: Path, runs: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of cold starts here and in another checkout, in pairs, by route."""
    pairs: dict[str, list[tuple[float, float]]] = {"start-sse": [], "start-bedrock": []}
    async with open_stage() as here, open_stage(other) as there:
        for number in range(-1, runs):
            for name, taken in pairs.items():
                seconds = {}
                for stage in (here, there) if number % 2 else (there, here):
                    question = _question(stage, name.removeprefix("start-"))
                    seconds[stage.tree] = await _start_s(stage, question)
                # The first start writes bytecode and fills the page cache, so it is not counted.
                if number >= 0:
                    taken.append((seconds[TOP], seconds[other]))
    return pairs


async def _starts(stage: Stage) -> Start:
    return Start(
        imports_s=_import_floor_s(),
        sse_s=await _start_s(stage, _question(stage, "sse")),
        bedrock_s=await _start_s(stage, _question(stage, "bedrock")),
    )


def _start_row(
    route: str, took_s: Sequence[float], floors_s: Sequence[float], *, target: float
) -> Row:
    ratio = median(took / floor for took, floor in zip(took_s, floors_s, strict=True))
    return Row(
        figure=f"Cold start to the first streamed byte, {route} route",
        floor=f"{median(floors_s) * 1e3:.0f} ms (imports)",
        ours=f"{median(took_s) * 1e3:.0f} ms",
        ratio=f"{ratio:.2f} × imports",
        target=f"≤ {target:g} × imports",
        met=ratio <= target,
    )


async def _memory_row(stage: Stage) -> Row:
    async with run_function(stage) as (port, function):
        await ask(port, _question(stage, "sse"), times=_REQUESTS // 2)
        await ask(port, _question(stage, "bedrock"), times=_REQUESTS // 2)
        resident_mb = function.resident_mb()
    return Row(
        figure=f"Resident memory of the function after {_REQUESTS:,} requests",
        ours=f"{resident_mb:.0f} MB",
        target="≤ 90 MB",
        met=resident_mb <= 90,
    )


async def _start_s(stage: Stage, question: Question) -> float:
    """Return the seconds from the start of the process to the first streamed byte."""
    start_s = perf_counter()
    async with run_function(stage) as (port, _):
        ready_s = perf_counter()
        answers = await ask(port, question, times=1)
        return ready_s - start_s + answers.median_first_token_s


@asynccontextmanager
async def run_function(
    stage: Stage, variables: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[int, Child]]:
    """Run the streaming function on the emulator; yield the gateway's port and the function."""
    # The emulator prints the function's log when it ends.
    with contextlib.redirect_stdout(io.StringIO()):
        async with Emulator() as emulator:
            function = await emulator.start_function(
                name="chat",
                command=[sys.executable, "-m", "awslambdaric", "chat.main"],
                env={
                    **environment(stage.settings),
                    EXEC_WRAPPER: str(stage.tree / "functions" / "stream_bootstrap"),
                    "BENCH_API_KEY": "bench",
                    **(variables or {}),
                },
                mode="STREAM",
                timeout_s=60,
                routes=CHAT_ROUTES,
                task_root=stage.tree / "functions",
            )
            port = urlsplit(emulator.url).port
            assert port is not None
            yield port, Child(function.environments[0].pid)


@asynccontextmanager
async def open_stage(tree: Path = TOP) -> AsyncIterator[Stage]:
    """Run an upstream and a store, with the tables, catalog and key that a checkout creates."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_ministack(Path(folder)) as dynamodb_url,
        child("bench.upstream", measured=False) as upstream,
    ):
        catalog = Path(folder) / "routing.json"
        settings = Settings(dynamodb_endpoint_url=dynamodb_url, catalog_file=catalog)
        key = _prepare(tree, str(upstream.port), dynamodb_url, str(catalog))
        yield Stage(tree, settings, key)


def _prepare(tree: Path, *arguments: str) -> str:
    """Run `stage.py` with the code of a checkout; return the secret of the key."""
    return subprocess.run(
        [sys.executable, "-P", _STAGING, *arguments],
        cwd=tree,
        env=environment_of(tree),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()


def _question(stage: Stage, provider: str) -> Question:
    question = Question.chat(f"{provider}/short", SHORT_CHUNKS, stream=True, key=stage.key)
    return question.to(f"/api{question.path}")


def _import_floor_s() -> float:
    start_s = perf_counter()
    subprocess.run([sys.executable, "-c", _IMPORT_FLOOR], check=True)
    return perf_counter() - start_s

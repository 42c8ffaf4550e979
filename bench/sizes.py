"""Measurement of the built streaming function with the CPU and memory of several Lambda sizes."""

import base64
import contextlib
import io
import json
import random
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from tests.deployed_functions import CHAT_ROUTES
from tests.deployment import environment
from tests.emulator import Emulator
from tests.emulator.process import EXEC_WRAPPER

from bench.accounts import BUSY_KEY
from bench.children import TOP
from bench.load import Question, ask
from bench.shares import VCPU_MB, limited, preferred
from bench.starts import Stage, open_stage
from bench.upstream import SHORT_CHUNKS, STREAM_CHUNKS
from infra.artefact.interpreters import find_lambda_python
from tollgate.core.clock import SystemClock
from tollgate.core.files.stored import NewFile
from tollgate.settings import Settings
from tollgate.wiring.files import wire_files
from tollgate.wiring.stores import wire_stores

SIZES_MB: Final = (512, 1_024, VCPU_MB)
_PATH: Final = "/api/v1/chat/completions"
_ARTEFACT: Final = TOP / ".aws-sam" / "host" / "ChatFunction"
# AWS Lambda's price in us-east-1 (2026-11-23), for arm64 as in the template.
_ARM_USD_GB_S: Final = 0.0000133334
_X86_USD_GB_S: Final = 0.0000166667
_USD_MILLION_REQUESTS: Final = 0.20
# The duration of the provider's answer that the price of a million requests assumes.
_ANSWER_S: Final = 5.0
_WARM_UP, _STREAMS, _BURSTS = 5, 40, 5
# Lambda accepts bodies of up to 6 MB. Larger content reaches a function as a file that the request
# names, here 20 MB.
_PICTURE_BYTES: Final = 4_300_000
_DOCUMENT_BYTES: Final = 20_000_000
_PNG: Final = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
_PDF: Final = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


@dataclass(frozen=True, kw_only=True)
class Size:
    """The figures of one environment; times are in seconds."""

    start_s: float
    first_token_s: list[float]
    burst_s: float
    paced_s: float
    warm_mb: float
    large_s: float
    peak_mb: float


async def measure_sizes(rounds: int) -> str:
    """Return the table of sizes; each round measures each size in turn, in a fresh environment."""
    if not (_ARTEFACT / "chat.py").exists():
        raise SystemExit("there is no artefact for this machine: make build TARGET=host")
    taken: dict[int, list[Size]] = {size_mb: [] for size_mb in SIZES_MB}
    with preferred():
        async with open_stage() as opened:
            folder = opened.settings.catalog_file.parent
            settings = opened.settings.model_copy(update={"objects_folder": folder / "objects"})
            stage = replace(opened, settings=settings)
            document = await _store_document(settings)
            for number in range(-1, rounds):
                for size_mb, sizes in taken.items():
                    measured = await _measure(stage, document, size_mb)
                    # The first start fills the page cache, so it is not counted.
                    if number >= 0:
                        sizes.append(measured)
    heading = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    return "\n".join([*heading, *(format_size(*each) for each in taken.items())])


async def _measure(stage: Stage, document: Mapping[str, object], size_mb: int) -> Size:
    short, burst, paced = (
        Question.chat(f"sse/{name}", marks, stream=True, key=stage.key).to(_PATH)
        for name, marks in (
            ("short", SHORT_CHUNKS),
            ("quick", STREAM_CHUNKS),
            ("paced", STREAM_CHUNKS),
        )
    )
    start_s = perf_counter()
    async with _running(stage, size_mb) as (port, pid):
        await ask(port, short, times=1)
        start_s = perf_counter() - start_s
        await ask(port, short, times=_WARM_UP)
        first_token_s = (await ask(port, short, times=_STREAMS)).first_token_s
        burst_s = await _seconds_each(port, burst, _BURSTS)
        paced_s = await _seconds_each(port, paced, 1)
        warm_mb = _peak_mb(pid)
        await ask(port, _asking(short, _picture()), times=2)
        large_s = await _seconds_each(port, _asking(short, document), 2)
        return Size(
            start_s=start_s,
            first_token_s=first_token_s,
            burst_s=burst_s,
            paced_s=paced_s,
            warm_mb=warm_mb,
            large_s=large_s,
            peak_mb=_peak_mb(pid),
        )


async def _seconds_each(port: int, question: Question, times: int) -> float:
    start_s = perf_counter()
    await ask(port, question, times=times)
    return (perf_counter() - start_s) / times


def _asking(question: Question, part: Mapping[str, object]) -> Question:
    """Return the question with a content part as its message."""
    body = json.loads(question.body) | {"messages": [{"role": "user", "content": [part]}]}
    return replace(question, body=json.dumps(body).encode())


def _picture() -> Mapping[str, object]:
    """Return a picture with which the body almost reaches Lambda's limit."""
    content = base64.b64encode(_PNG + random.Random(1).randbytes(_PICTURE_BYTES)).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{content}"}}


async def _store_document(settings: Settings) -> Mapping[str, object]:
    """Store the largest document that a request may name; return the part that names it."""
    clock = SystemClock()
    stores = wire_stores(settings, clock)
    files = wire_files(settings, stores, clock)
    assert files is not None
    new = NewFile(
        workspace_id=BUSY_KEY.workspace_id,
        key_id="bench",
        filename="large.pdf",
        purpose="user_data",
        media_type="application/pdf",
    )
    async with aclosing(stores), aclosing(files):
        stored = await files.store.create(new, _PDF + random.Random(2).randbytes(_DOCUMENT_BYTES))
    return {"type": "file", "file": {"file_id": stored.id}}


@asynccontextmanager
async def _running(stage: Stage, size_mb: int) -> AsyncIterator[tuple[int, int]]:
    """Run the artefact on the emulator; yield the gateway's port and the function's process."""
    python = find_lambda_python(None)
    if python is None:
        raise SystemExit("no python3.13 runs here: name one with PYTHON313=/path/to/python3.13")
    with (
        tempfile.TemporaryDirectory() as folder,
        limited(size_mb, Path(folder)) as wrapper,
        # The emulator prints the function's log when it ends.
        contextlib.redirect_stdout(io.StringIO()),
    ):
        async with Emulator() as emulator:
            function = await emulator.start_function(
                name="chat",
                command=[str(_ARTEFACT / "stream_bootstrap"), python, "chat.main"],
                env={
                    **environment(stage.settings),
                    EXEC_WRAPPER: str(wrapper),
                    "BENCH_API_KEY": "bench",
                    "TOLLGATE_BODY_BYTES_MAX": str(stage.settings.body_bytes_max),
                    "TOLLGATE_OBJECTS_FOLDER": str(stage.settings.objects_folder),
                },
                mode="STREAM",
                timeout_s=60,
                memory_mb=size_mb,
                routes=CHAT_ROUTES,
                task_root=_ARTEFACT,
            )
            port = urlsplit(emulator.url).port
            assert port is not None
            yield port, function.environments[0].pid


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


_COLUMNS: Final = (
    *("MB", "vCPU", "cold start", "first token, 50 %", "95 %", "burst, chunks/s"),
    *("200 paced chunks", "peak, warm", "20 MB document", "peak", "arm64, $ a million", "x86"),
)


def format_size(size_mb: int, taken: list[Size]) -> str:
    """Return the table line of a size."""
    tokens_s = [size for each in taken for size in each.first_token_s]
    billed_s = _ANSWER_S + median(tokens_s)
    prices = (
        billed_s * size_mb / 1024 * rate * 1e6 + _USD_MILLION_REQUESTS
        for rate in (_ARM_USD_GB_S, _X86_USD_GB_S)
    )
    cells = (
        f"{size_mb:,} MB",
        f"{size_mb / VCPU_MB:.2f}",
        f"{median(size.start_s for size in taken) * 1e3:,.0f} ms",
        f"{median(tokens_s) * 1e3:.1f} ms",
        f"{quantiles(tokens_s, n=20)[-1] * 1e3:.1f} ms",
        f"{STREAM_CHUNKS / median(size.burst_s for size in taken):,.0f}",
        f"{median(size.paced_s for size in taken) * 1e3:,.0f} ms",
        f"{max(size.warm_mb for size in taken):.0f} MB",
        f"{median(size.large_s for size in taken):.2f} s",
        f"{max(size.peak_mb for size in taken):.0f} MB",
        *(f"{price:.1f}" for price in prices),
    )
    return f"| {' | '.join(cells)} |"

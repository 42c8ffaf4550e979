"""Processes that are made ready first and begin together, each with one order on its stdin."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Protocol

_ROOT = Path(__file__).parent.parent.parent


class Order(Protocol):
    """What a process is to do."""

    def to_json(self) -> str: ...


async def started(module: str) -> asyncio.subprocess.Process:
    """A process that has imported everything and waits for its order."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": f"{_ROOT / 'functions'}:{_ROOT}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    if process.stdout is None or await process.stdout.readline() != b"ready\n":
        raise RuntimeError(f"a process of {module} did not start")
    return process


async def told(process: asyncio.subprocess.Process, order: Order) -> Any:
    """What a process has to say, as JSON, once its order is done."""
    try:
        output, errors = await process.communicate(order.to_json().encode() + b"\n")
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise RuntimeError(errors.decode()[-2000:])
    return json.loads(output)

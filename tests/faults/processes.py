"""Processes that start first and begin together, each with one order on its stdin."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Protocol

_ROOT = Path(__file__).parent.parent.parent


class Order(Protocol):
    """The work of a process."""

    def to_json(self) -> str: ...


async def start(module: str) -> asyncio.subprocess.Process:
    """Start a process; return it once it has imported everything and waits for its order."""
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


async def run_order(process: asyncio.subprocess.Process, order: Order) -> Any:
    """Give a process its order; return its report, parsed from JSON."""
    try:
        output, errors = await process.communicate(order.to_json().encode() + b"\n")
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise RuntimeError(errors.decode()[-2000:])
    return json.loads(output)

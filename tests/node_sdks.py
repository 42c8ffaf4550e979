"""OpenAI's and Anthropic's SDKs for Node, as `make .tools/node/stamp` installs them.

Their packages are pinned by integrity in tests/node; where there is no npm, tests that need them
are skipped.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.local_server import environment

_TOP = Path(__file__).parent.parent
_PACKAGES = _TOP / ".tools/node/node_modules"
_INSTALLED = _TOP / ".tools/node/stamp"
_LOCK_STEP = _TOP / "tests/node/lock_step.mjs"


def node_program() -> str:
    """The path of node; the test is skipped where it or the SDKs are missing."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("no node: install Node.js 20 or newer, and run `make .tools/node/stamp`")
    if not _INSTALLED.is_file():
        pytest.skip("no SDKs for Node: run `make .tools/node/stamp`")
    return found


@asynccontextmanager
async def reading(
    format_name: str, *, base_url: str, model: str, key: str
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Read one stream with the SDK of a format; yields the lines of tests/node/lock_step.mjs."""
    process = await asyncio.create_subprocess_exec(
        node_program(),
        str(_LOCK_STEP),
        format_name,
        base_url,
        model,
        env=environment() | {"KEY": key, "PACKAGES": str(_PACKAGES)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield _lines(process.stdout)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _lines(output: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    async for line in output:
        told: dict[str, Any] = json.loads(line)
        yield told

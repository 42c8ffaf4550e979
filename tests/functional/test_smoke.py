"""`make smoke`'s tests, run against the functions behind the emulator."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.deployment import Deployment, Workspace

ROOT = Path(__file__).parents[2]


@pytest.mark.asyncio(loop_scope="session")
async def test_what_smokes_a_stack_passes_on_a_stack_that_works(
    deployment: Deployment, workspace: Workspace
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/live/test_smoke.py",
        ),
        cwd=ROOT,
        env={
            **os.environ,
            "TOLLGATE_SMOKE_URL": f"{deployment.emulator.url}/v1",
            "TOLLGATE_API_KEY": workspace.inference.secret,
            "TOLLGATE_SMOKE_MODEL": "test/echo",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert b"5 passed" in output

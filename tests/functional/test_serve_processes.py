"""`tollgate serve --processes`: several processes on one port, one of which is killed meanwhile.

Keeps C36, C66.
"""

import asyncio
import os
import re
import signal
from asyncio import StreamReader
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.mmap_dict import MmapedDict

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.functional.test_lambda_store import swept
from tests.functional.test_serve import CHAT, Served, begun, served
from tests.upstream.speakers import OPENAI
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKEN = "a-token-of-prometheus"


async def sees(output: StreamReader, pattern: str) -> str:
    """Return the first group of a pattern, once a line of what is written has it."""
    async with asyncio.timeout(PATIENCE_S):
        while line := (await output.readline()).decode():
            if found := re.search(pattern, line):
                return found[1]
    raise AssertionError(f"it ended without {pattern}")


def children(pid: int) -> set[int]:
    """Return the processes that serve: those that a process has started by `spawn`."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in listed}
    return {child for child, command in commands.items() if b"spawn_main" in command}


def in_flight(folder: Path) -> dict[int, float]:
    """Return what each process answers at the moment, once it has opened its app."""
    counts: dict[int, float] = {}
    for file in folder.glob("tollgate-metrics-*/gauge_livesum_*.db"):
        values = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call]
        pid = int(file.stem.rpartition("_")[2])
        counts[pid] = sum(value for key, value, *_ in values if "in_flight" in key)
    return counts


async def becomes(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.05)


async def stops_listening(server: Served) -> None:
    """Wait until a connection is refused; one that waited while the door closed is reset."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await server.get("/v1/health/live")
            except aiohttp.ClientConnectorError:
                return
            except aiohttp.ClientError:
                continue


async def test_c36_a_killed_process_is_started_again_and_all_end_with_their_streams(
    deployment: Deployment, workspace: Workspace, tmp_path: Path
) -> None:
    upstream = deployment.upstreams.alpha
    words = OPENAI.text(["Hello", " world"])
    cost = 9 * 1_000 + 3 * 2_000
    more = {"TOLLGATE_METRICS_TOKEN": TOKEN, "TMPDIR": str(tmp_path)}
    async with served(deployment, "--processes", "2", **more) as server:
        output = server.process.stdout
        assert output is not None
        for expected in ("one that answers nothing is killed", "the one that answers is killed"):
            await becomes(
                lambda: len(children(server.process.pid) & in_flight(tmp_path).keys()) == 2
            )
            upstream.enqueue(OPENAI.script(words, lock_step=True))
            for _ in range(2):
                await upstream.release()
            async with server.post(workspace.inference, stream=True) as response:
                await begun(deployment, response)
                alive = children(server.process.pid)
                [its] = [
                    pid for pid, count in in_flight(tmp_path).items() if count and pid in alive
                ]
                others = alive - {its}
                spared = expected == "one that answers nothing is killed"
                os.kill(others.pop() if spared else its, signal.SIGKILL)
                await sees(output, r"a process is (lost)")
                assert (await server.get("/v1/health/ready")).status == 200
                if spared:
                    for _ in words[2:]:
                        await upstream.release()
                    assert (await response.read()).endswith(b"data: [DONE]\n\n")
                else:
                    with pytest.raises(aiohttp.ClientError):
                        await response.read()
        upstream.reset()

        await swept(deployment, HOLD_LIFETIME_S + 5)
        await deployment.assert_books_closed(workspace, cost)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with server.http.get(f"{server.url}/metrics", headers=headers) as reply:
            text = await reply.text()
        # The counts of processes that have ended are in the sums, what they were doing is not.
        assert f'tollgate_requests_total{{route="{CHAT}",status="200"}} 1.0' in text
        assert "tollgate_requests_in_flight 0.0" in text

        upstream.enqueue(OPENAI.script(words, lock_step=True))
        for _ in range(2):
            await upstream.release()
        async with server.post(workspace.inference, stream=True) as response:
            await begun(deployment, response)
            before = children(server.process.pid)
            server.process.send_signal(signal.SIGHUP)
            # The process of the stream has a successor, which does not wait for its end.
            await sees(output, r"all processes are (replaced)")
            assert len(children(server.process.pid) - before) == 2
            server.process.send_signal(signal.SIGTERM)
            await stops_listening(server)
            for _ in words[2:]:
                await upstream.release()
            assert (await response.read()).endswith(b"data: [DONE]\n\n")
        assert "Stopped." in await server.stopped()
    await deployment.assert_books_closed(workspace, 2 * cost)


async def test_processes_end_with_the_one_that_started_them(
    deployment: Deployment, tmp_path: Path
) -> None:
    async with served(deployment, "--processes", "2", TMPDIR=str(tmp_path)) as server:
        # One that still starts would hold the port until it has started.
        await becomes(lambda: len(in_flight(tmp_path)) == 2)
        assert (await server.get("/v1/health/ready")).status == 200
        server.process.kill()
        await stops_listening(server)
        await asyncio.wait_for(server.process.communicate(), PATIENCE_S)

"""`tollgate serve` and `tollgate upkeep`: the same gateway and its chores as plain processes.

Keeps C1, C36, C66.
"""

import asyncio
import gzip
import json
import re
import signal
import socket
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from openai import APIConnectionError, AsyncOpenAI

from tests.clocks import ShiftedClock
from tests.deployed_functions import ALPHA_KEY
from tests.deployment import (
    PATIENCE_S,
    Answer,
    Deployment,
    Key,
    Workspace,
    environment,
    open_stores,
)
from tests.emulator.credentials import CredentialsServer
from tests.local_server import TOLLGATE
from tests.local_server import environment as plain
from tests.nightly import first
from tests.stores import record_of
from tests.upstream import Script
from tests.upstream.speakers import OPENAI, SPEAKERS
from tollgate.core.clock import DAY_S
from tollgate.core.records.activity import day_of
from tollgate.core.records.generation import GenerationRecord

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = "/v1/chat/completions"
# "curl: (18) transfer closed with outstanding read data remaining"
CURL_PARTIAL_FILE = 18
ASKED = {"model": OPENAI.model, "messages": [{"role": "user", "content": "Say it"}]}
BEDROCK = next(it for it in SPEAKERS if it.name == "bedrock")


def variables(deployment: Deployment, **more: str) -> dict[str, str]:
    identity = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    settings = environment(deployment.settings)
    return plain() | settings | identity | {"ALPHA_API_KEY": ALPHA_KEY, "NO_COLOR": "1"} | more


@dataclass
class Served:
    """A running `tollgate serve`."""

    process: Process
    url: str
    http: aiohttp.ClientSession

    def post(self, key: Key, **more: Any) -> Any:
        headers = {"authorization": f"Bearer {key.secret}"}
        return self.http.post(self.url + CHAT, headers=headers, json={**ASKED, **more})

    async def get(self, path: str, key: Key | None = None) -> Answer:
        headers = {"authorization": f"Bearer {key.secret}"} if key else {}
        async with self.http.get(self.url + path, headers=headers) as response:
            return Answer(response.status, dict(response.headers), await response.read())

    async def stopped(self) -> str:
        """What it still wrote, once it has ended by itself."""
        output, _ = await asyncio.wait_for(self.process.communicate(), PATIENCE_S)
        assert self.process.returncode == 0, output.decode()
        return output.decode()


@asynccontextmanager
async def served(deployment: Deployment, *options: str, **more: str) -> AsyncIterator[Served]:
    process = await asyncio.create_subprocess_exec(
        *(TOLLGATE, "serve", "--port", "0", *options),
        env=variables(deployment, **more),
        stdout=PIPE,
        stderr=STDOUT,
        limit=1 << 20,
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode()
        found = re.search(r" on (127\.0\.0\.1:\d+)\.$", line.strip())
        assert found is not None, line + (await process.stdout.read()).decode()
        timeout = aiohttp.ClientTimeout(PATIENCE_S)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            yield Served(process, f"http://{found[1]}", http)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def begun(deployment: Deployment, response: aiohttp.ClientResponse) -> None:
    """Read up to the first word of a stream in lock-step."""
    assert response.status == 200
    while b"Hello" not in await response.content.readuntil(b"\n\n"):
        pass


async def refuses_connections(server: Served) -> None:
    """Wait until nobody listens any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await server.get("/v1/health/live")
            except aiohttp.ClientConnectorError:
                return


async def test_metrics_have_what_a_process_served_and_its_token_reads_them(
    deployment: Deployment, workspace: Workspace
) -> None:
    token = "a-token-of-prometheus"
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hello"])))
    async with served(deployment, TOLLGATE_METRICS_TOKEN=token) as server:
        async with server.post(workspace.inference) as response:
            assert response.status == 200
        async with server.post(workspace.management) as response:
            assert response.status == 403
        assert (await server.get("/metrics", workspace.management)).status == 401
        headers = {"authorization": f"Bearer {token}"}
        async with server.http.get(f"{server.url}/metrics", headers=headers) as response:
            text = await response.text()
        assert f'tollgate_requests_total{{route="{CHAT}",status="200"}} 1.0' in text
        assert f'tollgate_refusals_total{{code="permission_denied",route="{CHAT}"}} 1.0' in text
        assert re.search(r'tollgate_first_token_seconds_count{[^}]*outcome="ok"[^}]*} 1.0', text)
        assert workspace.inference.secret not in text
    async with served(deployment) as server:
        assert (await server.get("/metrics")).status == 404


async def test_c1_one_process_serves_what_the_functions_serve(
    deployment: Deployment, workspace: Workspace
) -> None:
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hello"])))
    async with served(deployment) as server:
        async with server.post(workspace.inference) as response:
            answer = await response.json()
        assert answer["choices"][0]["message"]["content"] == "Hello"
        for path in ("/v1/generation", "/api/v1/generation"):
            shown = await server.get(f"{path}?id={answer['id']}", workspace.inference)
            assert shown.json["data"]["id"] == answer["id"]
        assert (await server.get("/v1/health/ready")).status == 200
        server.process.send_signal(signal.SIGTERM)
        log = await server.stopped()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [it["generation_id"] for it in lines if it["message"] == "generation"] == [
        answer["id"].removeprefix("gen-")
    ]


async def test_a_stream_that_runs_when_the_process_is_told_to_stop_is_served_to_its_end(
    deployment: Deployment, workspace: Workspace
) -> None:
    upstream = deployment.upstreams.alpha
    words = OPENAI.text(["Hello", " world"])
    upstream.enqueue(OPENAI.script(words, lock_step=True))
    async with served(deployment) as server:
        for _ in range(2):
            await upstream.release()
        async with server.post(workspace.inference, stream=True) as response:
            await begun(deployment, response)
            server.process.send_signal(signal.SIGTERM)
            await refuses_connections(server)
            for _ in words[2:]:
                await upstream.release()
            rest = await response.read()
        assert rest.endswith(b"data: [DONE]\n\n")
        await server.stopped()
    await deployment.assert_books_closed(workspace, 9 * 1_000 + 3 * 2_000)


async def test_c36_a_stream_that_outlasts_the_drain_is_cut_off_billed_and_recorded(
    deployment: Deployment, workspace: Workspace
) -> None:
    upstream = deployment.upstreams.alpha
    upstream.enqueue(OPENAI.script(OPENAI.begun(["Hello", " world"]), end="hang"))
    async with served(deployment, "--drain-s", "1") as server:
        async with server.post(workspace.inference, stream=True) as response:
            generation_id = response.headers["x-generation-id"]
            await begun(deployment, response)
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(aiohttp.ClientError):
                await response.read()
        await server.stopped()
    record: GenerationRecord = await deployment.record(workspace, generation_id)
    assert (record.outcome, record.usage_source) == ("cancelled", "estimated")
    await deployment.assert_books_closed(workspace, record.cost_nano_usd)


async def test_in_a_container_it_signs_with_the_role_of_the_container(
    deployment: Deployment, workspace: Workspace
) -> None:
    upstream = deployment.upstreams.bedrock
    upstream.enqueue(BEDROCK.script(BEDROCK.text(["Hello"])))
    async with CredentialsServer() as credentials:
        identity = {
            "AWS_ACCESS_KEY_ID": "",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": credentials.url,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": credentials.token,
        }
        async with (
            served(deployment, **identity) as server,
            server.post(workspace.inference, model=BEDROCK.model) as response,
        ):
            assert response.status == 200
        [received] = upstream.received
        assert f"Credential={credentials.identity(1)}/" in received.headers["authorization"]


@pytest.mark.parametrize(
    ("task", "message"),
    first(1, [("sweep", "swept"), ("rollup", "rolled up"), ("audit", "audited")]),
)
async def test_a_chore_is_done_once_and_says_what_came_of_it(
    deployment: Deployment, task: str, message: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(TOLLGATE, "upkeep", task), env=variables(deployment), stdout=PIPE, stderr=STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0, output.decode()
    told = [json.loads(line)["message"] for line in output.decode().splitlines()]
    assert message in told


async def test_c67_a_day_is_closed_exported_and_exported_again(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace()
    yesterday = ShiftedClock(-DAY_S - 3_600)
    async with aclosing(open_stores(deployment.settings, yesterday)) as earlier:
        principal = await deployment.stores.keys.authenticate(workspace.inference.secret)
        hold = await earlier.ledger.hold(principal, 1_000)
        await earlier.ledger.settle(hold, record_of(hold, 7))
    folder = {"TOLLGATE_OBJECTS_FOLDER": str(tmp_path), "TOLLGATE_DAILY_EXPORT": "true"}
    day = day_of(int(yesterday.now_s()))
    place = f"workspace={workspace.id}/day={day}/00000.csv.gz"
    for arguments in (
        ("upkeep", "rollup"),
        ("export", "--day", day, "--workspace", workspace.id),
        ("export", "--day", "1999-01-01"),
    ):
        process = await asyncio.create_subprocess_exec(
            TOLLGATE, *arguments, env=variables(deployment, **folder), stdout=PIPE, stderr=STDOUT
        )
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        if arguments[-1] == "1999-01-01":
            assert (process.returncode, b"is not closed" in output) == (1, True)
            continue
        assert process.returncode == 0, output.decode()
        rows = gzip.decompress((tmp_path / "exports" / "generations" / place).read_bytes())
        assert len(rows.splitlines()) == 2
        assert (tmp_path / "exports" / "activity" / place).exists()
        if arguments[0] == "export":
            assert f"{workspace.id} {day}: 1 generations" in output.decode()


async def test_a_chore_that_cannot_be_done_is_told_in_lines_of_json_and_fails(
    deployment: Deployment,
) -> None:
    away = {"TOLLGATE_DYNAMODB_ENDPOINT_URL": "http://127.0.0.1:9"}
    process = await asyncio.create_subprocess_exec(
        *(TOLLGATE, "upkeep", "sweep"),
        env=variables(deployment) | away,
        stdout=PIPE,
        stderr=STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 1
    assert [json.loads(line)["message"] for line in output.decode().splitlines()][-1] == (
        "sweep failed"
    )


@pytest.mark.nightly
async def test_a_full_disk_of_logs_keeps_no_server_from_its_start(deployment: Deployment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'exec "$@" >/dev/full', "sh", TOLLGATE, "serve", "--port", port),
        env=variables(deployment),
        stderr=DEVNULL,
    )
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE_S)) as http:
            # Before it listens there is nobody to ask.
            while process.returncode is None:
                with suppress(aiohttp.ClientConnectorError):
                    async with http.get(f"http://127.0.0.1:{port}/v1/health/live") as reply:
                        assert reply.status == 200
                        break
                await asyncio.sleep(0.05)
            assert process.returncode is None
            process.terminate()
            await asyncio.wait_for(process.wait(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()


@pytest.mark.parametrize(
    ("options", "variable", "value", "says"),
    first(
        2,
        [
            (
                [],
                "TOLLGATE_CATALOG_FILE",
                "/nowhere/routing.json",
                "`tollgate compile` writes a catalog",
            ),
            ([], "TOLLGATE_CATALOG_FILE", "/", "/ is not a valid catalog"),
            ([], "TOLLGATE_CATALOG_FILE", "/etc/passwd", "/etc/passwd is not a valid catalog"),
            (
                [],
                "TOLLGATE_RECORD_DAYS",
                "x",
                "TOLLGATE_RECORD_DAYS: Input should be a valid integer",
            ),
            (["--host", "192.0.2.1"], "NO_COLOR", "1", "Cannot listen on 192.0.2.1:0"),
            (["--port", "65536"], "NO_COLOR", "1", "65536 is not in the range"),
        ],
    ),
)
async def test_what_cannot_be_served_is_told_in_one_line(
    options: list[str], variable: str, value: str, says: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(TOLLGATE, "serve", "--port", "0", *options),
        env=plain() | {variable: value},
        stdout=PIPE,
        stderr=STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode in (1, 2)
    assert says in output.decode().splitlines()[-1]
    assert b"Traceback" not in output


BROKEN_SOUND = Script(
    headers={"content-type": "audio/mpeg"}, chunks=[b"ID3", b"half"], lock_step=True, end="close"
)


@pytest.mark.parametrize("reader", first(1, ["curl", "aiohttp", "httpx", "openai"]))
async def test_c33_c82_sound_that_breaks_is_an_error_to_whatever_reads_it(
    deployment: Deployment, workspace: Workspace, reader: str
) -> None:
    upstream = deployment.upstreams.alpha
    upstream.enqueue(BROKEN_SOUND)
    asked = {"model": "alpha/voice", "input": "Hello", "voice": "alloy"}
    headers = {"authorization": f"Bearer {workspace.inference.secret}"}
    for _ in BROKEN_SOUND.chunks:
        await upstream.release()
    async with served(deployment) as server:
        url = f"{server.url}/v1/audio/speech"
        match reader:
            case "aiohttp":
                async with server.http.post(url, headers=headers, json=asked) as response:
                    assert response.status == 200
                    with pytest.raises(aiohttp.ClientPayloadError):
                        await response.read()
            case "httpx":
                async with httpx2.AsyncClient() as client:
                    with pytest.raises(httpx2.RemoteProtocolError):
                        await client.post(url, headers=headers, json=asked)
            case "openai":
                key = workspace.inference.secret
                async with AsyncOpenAI(
                    base_url=f"{server.url}/v1", api_key=key, max_retries=0
                ) as sdk:
                    # What it raises of a body that breaks is its transport's own error.
                    with pytest.raises((httpx2.RemoteProtocolError, APIConnectionError)):
                        await sdk.audio.speech.create(**asked)
            case _:
                process = await asyncio.create_subprocess_exec(
                    *("curl", "-sS", "-o", "/dev/null", url),
                    *("-H", f"authorization: {headers['authorization']}", "-d", json.dumps(asked)),
                    stderr=PIPE,
                )
                _, words = await asyncio.wait_for(process.communicate(), PATIENCE_S)
                assert process.returncode == CURL_PARTIAL_FILE, words.decode()
    await deployment.assert_books_closed(workspace, 0)

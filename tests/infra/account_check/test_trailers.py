"""The stack whose stream ends with error trailers: deployed, run, called, deleted."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY

from infra.account_check import trailers
from infra.account_check.probes import end_with_trailers
from infra.account_check.trailers import StreamEnd, read_stream_end, trailers_stack
from tests.artefact.aws_emulator import emulated
from tests.emulator import Emulator
from tests.emulator.process import FunctionConfig
from tests.infra.account import SAM, running_account
from tests.infra.account_check.scripted_stack import scripted_stack

FOLDER = Path(trailers.__file__).parent
TEMPLATE = FOLDER / "trailers.yaml"
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CLEAN = HEAD + b"6\r\nbegun\n\r\n0\r\n\r\n"
TRAILER = b"Lambda-Runtime-Function-Error-Type: Function.Probe\r\n\r\n"
FORWARDED = CLEAN.removesuffix(b"\r\n") + TRAILER
UNKNOWN = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}"


@asynccontextmanager
async def answering(*replies: bytes) -> AsyncIterator[str]:
    """A server that sends these bytes, a connection each, and closes; its URL."""
    left = list(replies)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/check"


@pytest.fixture
def task_root(tmp_path: Path) -> Path:
    """The folder that CloudFormation makes of the function's text."""
    copyfile(FOLDER / "trailers_function.py", tmp_path / "index.py")
    return tmp_path


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        (FORWARDED, StreamEnd.TRAILERS),
        (CLEAN, StreamEnd.CLEAN),
        (CLEAN.removesuffix(b"0\r\n\r\n"), StreamEnd.BROKEN),
        (HEAD + b"6\r\nbeg", StreamEnd.BROKEN),
        (HEAD + b"nonsense\r\n", StreamEnd.BROKEN),
        (UNKNOWN, StreamEnd.ABSENT),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nbegun\n", StreamEnd.ABSENT),
    ],
)
async def test_the_end_of_a_stream_is_told_from_its_bytes(reply: bytes, end: StreamEnd) -> None:
    async with answering(reply) as url:
        assert await read_stream_end(url) is end


async def test_the_function_streams_behind_an_emulated_gateway(task_root: Path) -> None:
    async with Emulator() as emulator:
        command = [sys.executable, "-m", "awslambdaric", "index.handler"]
        function = await emulator.start_function(
            name="trailers",
            command=command,
            mode="STREAM",
            timeout_s=20,
            routes=["GET /"],
            task_root=task_root,
        )
        assert await read_stream_end(f"{emulator.url}/") is StreamEnd.CLEAN
        [invocation] = function.invocations
        assert invocation.error == "Function.Probe"


async def test_the_function_streams_under_the_emulator_of_aws(task_root: Path) -> None:
    function = FunctionConfig(
        name="trailers",
        command=(sys.executable, "-m", "awslambdaric", "index.handler"),
        env={},
        handler="index.handler",
        task_root=task_root,
        memory_mb=128,
        init_timeout_s=10,
    )
    async with emulated(function, task_root / "log", timeout_s=20) as emulator:
        for _ in range(2):
            outcome = await emulator.invoke({})
            assert (outcome.prelude["statusCode"], outcome.body) == (200, b"begun\n")
        assert b"\r\n0\r\nLambda-Runtime-Function-Error-Type: Function.Probe" in emulator.tap.sent


def stack_that_exists(url: str) -> dict[str, Any]:
    return {
        "StackName": "tollgate-account-check",
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": 0,
        "Outputs": [{"OutputKey": "Url", "OutputValue": url}],
    }


@pytest.mark.parametrize(
    ("replies", "judgement"),
    [((UNKNOWN, CLEAN), "as expected"), ((FORWARDED,), "otherwise")],
    ids=["not forwarded", "forwarded"],
)
async def test_trailers_are_expected_not_to_come_through(
    replies: tuple[bytes, ...], judgement: str
) -> None:
    name = {"StackName": "tollgate-account-check"}
    async with answering(*replies) as url:
        with scripted_stack() as stack:
            complete = stack_that_exists(url)
            created = name | dict.fromkeys(
                ("TemplateBody", "Parameters", "Capabilities", "OnFailure"), ANY
            )
            stack.aws.expect("cloudformation", "create_stack", created, {})
            for _ in ("the waiter", "the output"):
                stack.aws.expect("cloudformation", "describe_stacks", name, {"Stacks": [complete]})
            stack.aws.expect("cloudformation", "delete_stack", name, {})
            deleted = complete | {"StackStatus": "DELETE_COMPLETE"}
            stack.aws.expect("cloudformation", "describe_stacks", name, {"Stacks": [deleted]})
            verdict = await end_with_trailers(stack.subject)
    assert verdict.judgement == judgement


@pytest.mark.nightly
async def test_the_stack_is_created_and_nothing_of_it_stays(tmp_path: Path) -> None:
    with running_account(tmp_path) as terminal:
        formation = boto3.client(
            "cloudformation",
            region_name="us-east-1",
            endpoint_url=terminal["AWS_ENDPOINT_URL"],
            aws_access_key_id="synthetic",
            aws_secret_access_key="synthetic",
        )
        async with trailers_stack(formation, "check") as url:
            assert url.endswith("/check")
            made = formation.describe_stack_resources(StackName="check")["StackResources"]
            assert len(made) == 7
        with pytest.raises(ClientError):
            formation.describe_stacks(StackName="check")


def test_aws_would_take_the_template() -> None:
    command = [SAM.with_name("cfn-lint"), TEMPLATE, "-r", "us-east-1"]
    environment = {"PATH": os.environ["PATH"]}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    # The most that a parameter, and code within a template, may have.
    assert len((FOLDER / "trailers_function.py").read_bytes()) <= 4096

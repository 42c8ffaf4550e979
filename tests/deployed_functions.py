"""The functions of a deployment, as the emulator starts them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.emulator import Emulator, Function
from tests.emulator.credentials import CredentialsServer
from tests.emulator.process import EXEC_WRAPPER

TOP = Path(__file__).parent.parent
FUNCTIONS = TOP / "functions"
# What infra/template.yaml says of the two functions.
CHAT_ROUTES = [
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /v1/responses",
    "POST /v1/responses/compact",
    "POST /v1/responses/input_tokens",
    "POST /v1/embeddings",
    "POST /v1/rerank",
    "POST /v1/v2/rerank",
    "POST /v1/moderations",
    "POST /v1/decisions",
    "POST /v1/images/generations",
    "POST /v1/images/edits",
    "POST /v1/audio/speech",
    "POST /v1/audio/transcriptions",
    "POST /v1/audio/translations",
]
API_ROUTES = [
    "ANY /",
    "ANY /{proxy+}",
    *(route.replace("POST", "ANY") for route in CHAT_ROUTES),
]
LOGIN_ROUTES = [
    "ANY /.well-known/oauth-authorization-server",
    "ANY /oauth/{proxy+}",
    "ANY /device",
    "ANY /v1/session",
]
CHAT_TIMEOUT_S, API_TIMEOUT_S, READER_TIMEOUT_S = 885, 29, 30
ALPHA_KEY = "sk-alpha-synthetic-0123456789"


@dataclass(frozen=True, kw_only=True)
class Code:
    """What is deployed: a folder for each function, what runs it, and where Lambda's client is."""

    chat: Path = FUNCTIONS
    api: Path = FUNCTIONS
    reader: Path = FUNCTIONS
    login: Path = FUNCTIONS
    python: str = sys.executable
    runtime: Path | None = None

    @property
    def command(self) -> list[str]:
        return [self.python, "-m", "awslambdaric"]

    @property
    def environment(self) -> dict[str, str]:
        if self.runtime is None:
            return {}
        return {
            "PYTHONPATH": str(self.runtime),
            "TOLLGATE_OPENAPI_FILE": str(self.api / "openapi.json"),
        }


SOURCE = Code()


async def start_chat(
    emulator: Emulator,
    variables: Mapping[str, str],
    code: Code,
    credentials: CredentialsServer | None,
    in_flight_max: int = 1,
) -> Function:
    return await emulator.start_function(
        name="chat",
        # The wrapper keeps the interpreter and leaves Lambda's own runtime client out.
        command=[*code.command, "chat.main"],
        env={
            **variables,
            EXEC_WRAPPER: str(code.chat / "stream_bootstrap"),
            "TOLLGATE_READER_FUNCTION": "reader",
            "ALPHA_API_KEY": ALPHA_KEY,
        },
        mode="STREAM",
        timeout_s=CHAT_TIMEOUT_S,
        routes=CHAT_ROUTES,
        task_root=code.chat,
        credentials=credentials,
        in_flight_max=in_flight_max,
    )


async def start_reader(emulator: Emulator, variables: Mapping[str, str], code: Code) -> Function:
    return await emulator.start_function(
        name="reader",
        command=[*code.command, "reader.handler"],
        env={**variables, **code.environment},
        mode="BUFFERED",
        timeout_s=READER_TIMEOUT_S,
        routes=[],
        task_root=code.reader,
        starts=False,
    )


async def start_api(emulator: Emulator, variables: Mapping[str, str], code: Code) -> Function:
    return await emulator.start_function(
        name="api",
        command=[*code.command, "api.handler"],
        env={**variables, **code.environment},
        mode="BUFFERED",
        timeout_s=API_TIMEOUT_S,
        routes=API_ROUTES,
        task_root=code.api,
    )


async def start_login(emulator: Emulator, variables: Mapping[str, str], code: Code) -> Function:
    return await emulator.start_function(
        name="login",
        command=[*code.command, "sign_in.handler"],
        env={**variables, **code.environment},
        mode="BUFFERED",
        timeout_s=API_TIMEOUT_S,
        routes=LOGIN_ROUTES,
        task_root=code.login,
    )

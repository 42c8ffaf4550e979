"""One execution environment: a process, its Runtime API, and the invocation it works on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tests.emulator.credentials import CredentialsServer
from tests.emulator.event import ACCOUNT_ID, REGION
from tests.emulator.invocation import Invocation
from tests.emulator.runtime_api import RuntimeApi
from tests.emulator.violations import Rule

EXEC_WRAPPER = "AWS_LAMBDA_EXEC_WRAPPER"
ENVIRONMENT_BYTES_MAX = 4096

# "Working with Lambda environment variables": reserved names that a function cannot set.
_RESERVED = {"_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION"} | {
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_LAMBDA_RUNTIME_API",
    "LAMBDA_TASK_ROOT",
    "LAMBDA_RUNTIME_DIR",
}


@dataclass(frozen=True)
class FunctionConfig:
    """What CloudFormation would be given; `command` is the interpreter and its original arguments.

    With `credentials` the function has SnapStart, and asks that server who it is.
    Raises ValueError where a deployment would be refused.
    """

    name: str
    command: tuple[str, ...]
    env: dict[str, str]
    handler: str
    task_root: Path
    memory_mb: int
    init_timeout_s: float
    credentials: CredentialsServer | None = None

    def __post_init__(self) -> None:
        if reserved := _RESERVED & self.env.keys():
            raise ValueError(f"reserved environment variables: {sorted(reserved)}")
        size = sum(len(name) + len(value) for name, value in self.env.items())
        if size > ENVIRONMENT_BYTES_MAX:
            # "Lambda quotas": 4 KB for all environment variables together.
            raise ValueError(f"environment of {size} bytes, over {ENVIRONMENT_BYTES_MAX}")

    @property
    def arn(self) -> str:
        return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{self.name}"

    @property
    def access_key_id(self) -> str:
        """The access key of the function's role, which is named after the function."""
        return f"ASIA{self.name.upper()}00000000"

    @property
    def argv(self) -> tuple[str, ...]:
        """What Lambda starts: the wrapper gets the interpreter and its original arguments.

        "Modifying the runtime environment", section "Wrapper scripts".
        """
        wrapper = self.env.get(EXEC_WRAPPER)
        return (wrapper, *self.command) if wrapper else self.command

    def environment(self, runtime_api: str) -> dict[str, str]:
        """All variables of the process: Lambda's own, PATH, and the function's."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.memory_mb),
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{self.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": "emulated",
            "AWS_LAMBDA_RUNTIME_API": runtime_api,
            "LAMBDA_TASK_ROOT": str(self.task_root),
            "LAMBDA_RUNTIME_DIR": str(Path(sys.executable).parent),
            "_HANDLER": self.handler,
            **self._identity(),
            **self.env,
        }

    def _identity(self) -> dict[str, str]:
        if self.credentials is None:
            return {
                "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
                "AWS_ACCESS_KEY_ID": self.access_key_id,
                "AWS_SECRET_ACCESS_KEY": "emulated-secret",
                "AWS_SESSION_TOKEN": "emulated-session",
            }
        # "Activating and managing Lambda SnapStart": the container's, not the access keys.
        return {
            "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": self.credentials.url,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": self.credentials.token,
        }


@dataclass(eq=False)
class Environment:
    """Owns a process from its start to its exit; serves one invocation after another.

    `idle` and `gone` tell the function that this environment can take work, or never will again.
    """

    config: FunctionConfig
    log: BinaryIO
    failures: list[Exception]
    report_violation: Callable[[Rule, str, str | None], None]
    idle: Callable[[Environment], None]
    gone: Callable[[Environment], None]
    current: Invocation | None = None
    initialised: bool = False
    init_error: str | None = None
    snapshots: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _assignment: asyncio.Future[Invocation] | None = None
    _timer: asyncio.TimerHandle | None = None
    _watch: asyncio.Task[None] | None = None
    _process: asyncio.subprocess.Process | None = None
    _killed: bool = False

    @property
    def arn(self) -> str:
        return self.config.arn

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def waiting(self) -> bool:
        return self._assignment is not None

    def start(self) -> None:
        """Begin the init phase; `ready` is set at the first /next or when the process failed."""
        self._watch = asyncio.get_running_loop().create_task(self._run())

    async def kill(self) -> None:
        """SIGKILL the process and all it started, and wait until the books are closed."""
        self._killed = True
        self._signal()
        await self.ended.wait()

    def assign(self, invocation: Invocation, timeout_s: float) -> None:
        """Answer the waiting /next. The deadline runs until the /next after it."""
        assert self._assignment is not None
        self.current = invocation
        invocation.start(timeout_s)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(timeout_s, self._time_out, invocation, timeout_s)
        self._assignment.set_result(invocation)
        self._assignment = None

    async def take(self) -> Invocation:
        self._finish_current()
        self.initialised = True
        assignment: asyncio.Future[Invocation] = asyncio.get_running_loop().create_future()
        self._assignment = assignment
        self.ready.set()
        self.idle(self)
        return await assignment

    def report(self, rule: Rule, detail: str) -> None:
        self.report_violation(rule, detail, self.current.request_id if self.current else None)

    @property
    def snap_start(self) -> bool:
        return self.config.credentials is not None

    def init_failed(self, message: str) -> None:
        self.init_error = message

    async def _run(self) -> None:
        api = RuntimeApi(self, self.failures)
        try:
            await self._run_process(await api.start(), api)
        finally:
            await api.close()
            self._finish_current()
            self.ready.set()
            self.ended.set()
            self.gone(self)

    async def _run_process(self, address: str, api: RuntimeApi) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.config.argv,
                env=self.config.environment(address),
                cwd=self.config.task_root,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self.log,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self.init_error = str(error)
            return
        if self._killed:
            self._signal()
        code = await self._process.wait()
        # Whatever the process left behind in its session goes with its environment.
        self._signal()
        self._withdraw()
        await api.close()
        self._account_for_exit(code)

    def _withdraw(self) -> None:
        if self._assignment is not None:
            self._assignment.cancel()
            self._assignment = None

    def _account_for_exit(self, code: int) -> None:
        reason = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        message = f"Runtime exited with error: {reason}"
        if not self.initialised:
            self.init_error = self.init_error or message
        current = self.current
        if current is None:
            return
        if current.cut_short:
            current.error = message
        elif current.answered and current.error is None and not self._killed:
            self.report(Rule.EXIT_AFTER_RESPONSE, message)
        current.fail("exit", message)

    def _time_out(self, invocation: Invocation, timeout_s: float) -> None:
        # "Configure Lambda function timeout": it is stopped; the environment is not reused.
        message = f"Task timed out after {timeout_s:.2f} seconds"
        if invocation.answered and not self._killed:
            self.report(Rule.OVERRUN_AFTER_RESPONSE, message)
        invocation.fail("timeout", message)
        self._killed = True
        self._signal()

    def _finish_current(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.current is not None:
            self.current.finish()
            self.current = None

    def _signal(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

"""One execution environment: a process, its Runtime API, and the invocations it works on."""

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
    "AWS_LAMBDA_MAX_CONCURRENCY",
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

    With `credentials` the function has SnapStart, and asks that server who it is. With an
    `in_flight_max` above 1 it is on Managed Instances.
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
    in_flight_max: int = 1

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
            **self._concurrency(),
            **self.env,
        }

    def _concurrency(self) -> dict[str, str]:
        if self.in_flight_max == 1:
            return {}
        return {
            "AWS_LAMBDA_MAX_CONCURRENCY": str(self.in_flight_max),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "lambda-managed-instances",
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
    """Owns a process from its start to its exit; serves one invocation after another, or several
    at once on Managed Instances.

    `running` has the invocation of each of its workers. `idle` and `gone` tell the function that
    this environment can take work, or never will again.
    """

    config: FunctionConfig
    log: BinaryIO
    failures: list[Exception]
    report_violation: Callable[[Rule, str, str | None], None]
    idle: Callable[[Environment], None]
    gone: Callable[[Environment], None]
    running: dict[int, Invocation] = field(default_factory=dict)
    initialised: bool = False
    init_error: str | None = None
    snapshots: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _assignments: dict[int, asyncio.Future[Invocation]] = field(default_factory=dict)
    _timers: dict[int, asyncio.TimerHandle] = field(default_factory=dict)
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
    def in_flight_max(self) -> int:
        return self.config.in_flight_max

    @property
    def waiting(self) -> int:
        return len(self._assignments)

    def start(self) -> None:
        """Begin the init phase; `ready` is set at the first /next or when the process failed."""
        self._watch = asyncio.get_running_loop().create_task(self._run())

    async def kill(self) -> None:
        """SIGKILL the process and all it started, and wait until the books are closed."""
        self._killed = True
        self._signal()
        await self.ended.wait()

    def assign(self, invocation: Invocation, timeout_s: float) -> None:
        """Answer a waiting /next. The deadline runs until the /next after it."""
        worker, assignment = next(iter(self._assignments.items()))
        del self._assignments[worker]
        self.running[worker] = invocation
        invocation.start(timeout_s)
        loop = asyncio.get_running_loop()
        self._timers[worker] = loop.call_later(timeout_s, self._time_out, invocation, timeout_s)
        assignment.set_result(invocation)

    async def take(self, worker: int) -> Invocation:
        self.finish(worker)
        self.initialised = True
        assignment: asyncio.Future[Invocation] = asyncio.get_running_loop().create_future()
        self._assignments[worker] = assignment
        self.ready.set()
        self.idle(self)
        return await assignment

    def finish(self, worker: int) -> None:
        """The worker is done with its invocation, or is gone."""
        if worker in self._timers:
            self._timers.pop(worker).cancel()
        if worker in self.running:
            self.running.pop(worker).finish()

    def report(self, rule: Rule, detail: str) -> None:
        only = next(iter(self.running.values())) if len(self.running) == 1 else None
        self.report_violation(rule, detail, only.request_id if only else None)

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
            for worker in list(self.running):
                self.finish(worker)
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
        for assignment in self._assignments.values():
            assignment.cancel()
        self._assignments.clear()

    def _account_for_exit(self, code: int) -> None:
        reason = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        message = f"Runtime exited with error: {reason}"
        if not self.initialised:
            self.init_error = self.init_error or message
        for invocation in self.running.values():
            if invocation.cut_short:
                invocation.error = message
            elif invocation.answered and invocation.error is None and not self._killed:
                self.report(Rule.EXIT_AFTER_RESPONSE, message)
            invocation.fail("exit", message)

    def _time_out(self, invocation: Invocation, timeout_s: float) -> None:
        # "Configure Lambda function timeout": it is stopped; the environment is not reused.
        message = f"Task timed out after {timeout_s:.2f} seconds"
        if invocation.answered and not self._killed:
            self.report(Rule.OVERRUN_AFTER_RESPONSE, message)
        invocation.fail("timeout", message)
        if self.in_flight_max > 1:
            # "Understanding the Lambda Managed Instances execution environment": the invocation is
            # marked as failed, and neither it nor the others are stopped.
            return
        self._killed = True
        self._signal()

    def _signal(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

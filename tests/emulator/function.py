"""A function: its environments, the queue before them, and the record of its invocations."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

from tests.emulator.invocation import Invocation
from tests.emulator.process import Environment, FunctionConfig
from tests.emulator.violations import Rule, Violation

Mode = Literal["STREAM", "BUFFERED"]


class InitFailed(RuntimeError):
    """The function's process did not come to its first /next."""


@dataclass(eq=False)
class Function:
    """Invocations run in up to `concurrency` environments, in each as many as its config says."""

    config: FunctionConfig
    mode: Mode
    timeout_s: float
    concurrency: int
    throttles: bool
    integration_timeout_s: float
    idle_timeout_s: float
    violations: list[Violation]
    failures: list[Exception]
    invocations: list[Invocation] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    environments_started: int = 0
    _log_file: BinaryIO = field(default_factory=lambda: tempfile.TemporaryFile("a+b", buffering=0))  # noqa: SIM115
    _log_closed: str | None = None
    _pending: deque[Invocation] = field(default_factory=deque)
    _idle: deque[Environment] = field(default_factory=deque)
    _timeout_once_s: float | None = None
    _closed: bool = False

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def log(self) -> str:
        """Standard output and error of all its processes."""
        if self._log_closed is None:
            size = os.fstat(self._log_file.fileno()).st_size
            return os.pread(self._log_file.fileno(), size, 0).decode("utf-8", errors="replace")
        return self._log_closed

    @property
    def throttled(self) -> bool:
        """Whether the next event is one more than may run at once."""
        running = sum(not invocation.finished.is_set() for invocation in self.invocations)
        return self.throttles and running >= self.concurrency * self.config.in_flight_max

    def timeout_once(self, timeout_s: float) -> None:
        """Give the next invocation another timeout."""
        self._timeout_once_s = timeout_s

    async def start(self) -> None:
        """Start the first environment and wait for its first /next. Raises InitFailed."""
        environment = self._start_environment()
        try:
            async with asyncio.timeout(self.config.init_timeout_s):
                await environment.ready.wait()
        except TimeoutError as error:
            raise InitFailed(f"{self.name}: no /next in time\n{self.log}") from error
        if not environment.initialised:
            raise InitFailed(f"{self.name}: {environment.init_error}\n{self.log}")

    async def kill(self) -> None:
        """SIGKILL every process now; the next invocation starts a new one."""
        for environment in list(self.environments):
            await environment.kill()

    async def close(self) -> None:
        """End all processes; what still waits fails."""
        self._closed = True
        await self.kill()
        while self._pending:
            self._fail_pending("the emulator was closed")
        self._log_closed = self.log
        self._log_file.close()

    def invoke(self, event: dict[str, Any]) -> Invocation:
        """Queue an event for the next free environment."""

        def report(rule: Rule, detail: str) -> None:
            self._report(rule, detail, invocation.request_id)

        invocation = Invocation(event, report)
        self.invocations.append(invocation)
        self._pending.append(invocation)
        self._schedule()
        return invocation

    def _schedule(self) -> None:
        while self._pending and self._idle:
            timeout_s = self._timeout_once_s or self.timeout_s
            self._timeout_once_s = None
            self._idle.popleft().assign(self._pending.popleft(), timeout_s)
        initialising = sum(not environment.ready.is_set() for environment in self.environments)
        in_flight_max = self.config.in_flight_max
        wanted = -(-(len(self._pending) - initialising * in_flight_max) // in_flight_max)
        room = self.concurrency - len(self.environments)
        for _ in range(0 if self._closed else min(wanted, room)):
            self._start_environment()

    def _start_environment(self) -> Environment:
        environment = Environment(
            self.config,
            self._log_file,
            self.failures,
            self._report,
            self._environment_idle,
            self._environment_gone,
        )
        self.environments.append(environment)
        self.environments_started += 1
        environment.start()
        return environment

    def _environment_idle(self, environment: Environment) -> None:
        self._idle.append(environment)
        self._schedule()

    def _environment_gone(self, environment: Environment) -> None:
        self.environments.remove(environment)
        self._idle = deque(it for it in self._idle if it is not environment)
        # An environment that cannot initialise fails the invocation it was started for.
        if not environment.initialised and self._pending and environment.init_error:
            self._fail_pending(environment.init_error)
        self._schedule()

    def _fail_pending(self, message: str) -> None:
        invocation = self._pending.popleft()
        invocation.fail("exit", message)
        invocation.finish()

    def _report(self, rule: Rule, detail: str, request_id: str | None) -> None:
        self.violations.append(Violation(rule, detail, self.name, request_id))

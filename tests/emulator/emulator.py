"""The emulator: a REST API stage, its functions, and the rules they broke."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.emulator.credentials import CredentialsServer
from tests.emulator.front import Front
from tests.emulator.function import Function, Mode
from tests.emulator.invoke_api import InvokeApi
from tests.emulator.process import FunctionConfig
from tests.emulator.violations import RulesBroken, Violation

# "Quotas for configuring and running a REST API": 29 s buffered. "Stream the integration response":
# 15 minutes in all, 5 minutes without a byte on a Regional endpoint.
INTEGRATION_TIMEOUT_S: dict[Mode, float] = {"BUFFERED": 29, "STREAM": 900}
IDLE_TIMEOUT_S = 300.0


class Emulator:
    """Lambda behind an API Gateway REST API, on 127.0.0.1.

    Leaving the context ends all processes, prints their logs, and raises RulesBroken for the
    violations that no `take_violations()` took.
    """

    def __init__(
        self,
        *,
        stage: str = "api",
        binary_media_types: tuple[str, ...] = (),
        gateway_responses: Mapping[str, Any] | None = None,
    ) -> None:
        self.url = ""
        self.violations: list[Violation] = []
        self.functions: dict[str, Function] = {}
        self._failures: list[Exception] = []
        self.invoke_url = ""
        self._invoke_api = InvokeApi(self.functions, self._failures)
        self._front = Front(stage, binary_media_types, self._failures, gateway_responses or {})

    async def __aenter__(self) -> Self:
        self.url = await self._front.start()
        self.invoke_url = await self._invoke_api.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._front.close()
        await self._invoke_api.close()
        for function in self.functions.values():
            await function.close()
            print(f"--- {function.name}\n{function.log}")
        if self._failures:
            raise ExceptionGroup("faults of the emulator itself", self._failures)
        if not self.violations:
            return
        broken = RulesBroken(self.violations)
        if exc is None:
            raise broken
        exc.add_note(str(broken))

    async def start_function(
        self,
        *,
        name: str,
        command: list[str],
        routes: list[str],
        task_root: Path,
        mode: Mode,
        timeout_s: float,
        env: dict[str, str] | None = None,
        handler: str | None = None,
        memory_mb: int = 1024,
        concurrency: int = 1,
        throttles: bool = False,
        integration_timeout_s: float | None = None,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        init_timeout_s: float = 60,
        credentials: CredentialsServer | None = None,
        starts: bool = True,
        in_flight_max: int = 1,
    ) -> Function:
        """Start a function's first environment, unless its first event does, and route to it.

        `command` is what the managed runtime would run; with AWS_LAMBDA_EXEC_WRAPPER in `env` the
        wrapper is started and gets it as arguments. `task_root` is /var/task, the working
        directory. `credentials` turns SnapStart on, `in_flight_max` Managed Instances. With
        `throttles` a request beyond what may run is refused, as by Lambda's quota; otherwise it
        waits. Without `handler`, the last argument is taken. A function of the same name is closed
        first. Raises InitFailed, ValueError.
        """
        config = FunctionConfig(
            name=name,
            command=tuple(command),
            env=env or {},
            handler=handler or command[-1],
            task_root=task_root,
            memory_mb=memory_mb,
            init_timeout_s=init_timeout_s,
            credentials=credentials,
            in_flight_max=in_flight_max,
        )
        function = Function(
            config,
            mode,
            timeout_s=timeout_s,
            concurrency=concurrency,
            throttles=throttles,
            integration_timeout_s=integration_timeout_s or INTEGRATION_TIMEOUT_S[mode],
            idle_timeout_s=idle_timeout_s,
            violations=self.violations,
            failures=self._failures,
        )
        self._front.add(routes, function)
        if name in self.functions:
            await self.functions[name].close()
        self.functions[name] = function
        if starts:
            await function.start()
        return function

    def take_violations(self) -> list[Violation]:
        """The violations so far, which no longer fail the test."""
        taken = list(self.violations)
        self.violations.clear()
        return taken

"""A puppet behind a STREAM method, for the tests of the emulator itself."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.emulator import Emulator, Function, Rule
from tests.emulator.puppetry import SAMPLES, Gate, Response, Steps, request

ROUTES = ["POST /v1/chat/completions"]
PUPPET = [sys.executable, "-m", "puppet"]


@dataclass
class Stage:
    """A running puppet behind a STREAM method."""

    emulator: Emulator
    function: Function
    gate: Gate

    async def ask(self, steps: Steps) -> Response:
        return await request(self.emulator.url + "/v1/chat/completions", {"steps": steps})

    def broken(self) -> list[Rule]:
        return [violation.rule for violation in self.emulator.take_violations()]


@asynccontextmanager
async def staged(**options: Any) -> AsyncIterator[Stage]:
    async with Gate() as gate, Emulator() as emulator:
        env = {"GATE_PORT": str(gate.port), **options.pop("env", {})}
        settings = {"timeout_s": 60, "mode": "STREAM", "routes": ROUTES, **options}
        function = await emulator.start_function(
            name="chat", command=PUPPET, env=env, task_root=SAMPLES, **settings
        )
        yield Stage(emulator, function, gate)

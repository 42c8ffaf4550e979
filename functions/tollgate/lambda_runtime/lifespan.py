"""The ASGI lifespan protocol: starts an application and stops it at the end of the process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tollgate.lambda_runtime.asgi import ASGIApp, AsgiMessage, run


class LifespanFailed(Exception):
    """The application reported that it could not start or stop, or ended without a report."""


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
    """Start the application, and stop it when the block ends.

    Yields the application's state; the caller copies this state into the scope of each request.
    Raises LifespanFailed if the application refuses, fails, or does not implement the lifespan.
    """
    to_app: asyncio.Queue[AsgiMessage] = asyncio.Queue()
    from_app: asyncio.Queue[AsgiMessage] = asyncio.Queue()
    state: dict[str, Any] = {}
    scope = {
        "type": "lifespan",
        "asgi": {"version": "3.0", "spec_version": "2.0"},
        "state": state,
    }
    running = asyncio.create_task(run(app, scope, to_app.get, from_app.put))
    try:
        to_app.put_nowait({"type": "lifespan.startup"})
        await _wait_completed("startup", running, from_app)
        try:
            yield state
        finally:
            to_app.put_nowait({"type": "lifespan.shutdown"})
            await _wait_completed("shutdown", running, from_app)
    finally:
        running.cancel()


async def _wait_completed(
    phase: str, running: asyncio.Task[None], from_app: asyncio.Queue[AsgiMessage]
) -> None:
    answer = asyncio.create_task(from_app.get())
    either: set[asyncio.Task[Any]] = {running, answer}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if answer.done() and answer.result()["type"] == f"lifespan.{phase}.complete":
        return
    reason = answer.result().get("message", "") if answer.done() else "no report before its end"
    answer.cancel()
    cause = running.exception() if running.done() and not running.cancelled() else None
    raise LifespanFailed(f"{phase} of the application failed: {reason}") from cause

"""Serves an ASGI application from the Lambda Runtime API, streaming every response.

On Lambda Managed Instances an environment is given up to AWS_LAMBDA_MAX_CONCURRENCY invocations at
once (AWS Lambda developer guide, "Using the Lambda runtime API for custom runtimes" and
"Understanding the Lambda Managed Instances execution environment", seen 2026-11-27).
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

from pydantic_core import to_json
from starlette.types import ASGIApp, Scope

from tollgate.core.clock import Clock, SystemClock
from tollgate.core.errors import InternalError
from tollgate.lambda_runtime.asgi import EventError, Exchange, lifespan, read_http_request, run
from tollgate.lambda_runtime.runtime_api import (
    FunctionError,
    Invocation,
    RuntimeApi,
    RuntimeApiError,
)

# The application has its own, earlier deadline. A request that still runs is cancelled this long
# before Lambda's deadline, at which Lambda kills the process.
CANCEL_BEFORE_DEADLINE_S: Final = 2.0
# The cancelled application may use the first half of that time; the second half is for the reply to
# the client.
_GIVE_UP_BEFORE_DEADLINE_S: Final = 1.0
_LOGGER: Final = logging.getLogger(__name__)


class DeadlineReached(Exception):
    """Raised if the application was cancelled at the deadline, before its response was complete."""


class IncompleteResponse(Exception):
    """Raised if the application returned without ending its response."""


class Snapshot(Protocol):
    """The hooks of an application whose process is copied from a snapshot (SnapStart)."""

    async def before(self) -> None:
        """Close resources that copies must not share, especially sockets."""

    async def after(self) -> None:
        """Open the resources that each restored copy needs; Lambda allows 10 s for this."""


async def run_loop(
    app: ASGIApp,
    runtime_api: str,
    *,
    clock: Clock | None = None,
    snapshot: Snapshot | None = None,
    invocations_max: int = 1,
) -> None:
    """Start the application, and answer invocations until the process ends.

    `runtime_api` is `host:port`, and `invocations_max` is the number of invocations that run at
    once. A failed start or restore is reported to Lambda and raised. The first error of a poller is
    raised once all pollers have ended, after which the process should end.
    """
    async with AsyncExitStack() as stack:
        try:
            state = await stack.enter_async_context(lifespan(app))
            if snapshot is not None:
                await snapshot.before()
        except Exception as error:
            await report_init_error(runtime_api, error)
            raise
        clients = [RuntimeApi(runtime_api) for _ in range(invocations_max)]
        for api in clients:
            stack.callback(api.close)
        if snapshot is not None:
            await _restore(clients[0], snapshot)
        clock = clock or SystemClock()
        pollers = [Poller(app, api, state, clock).run() for api in clients]
        # A poller that fails ends alone: the answers of the others go on to their ends.
        for ended in await asyncio.gather(*pollers, return_exceptions=True):
            if ended is not None:
                raise ended


async def _restore(api: RuntimeApi, snapshot: Snapshot) -> None:
    await api.wait_restored()
    try:
        await snapshot.after()
    except Exception as error:
        _LOGGER.error("restore failed", exc_info=error)
        await api.fail_restore(FunctionError(type=_type_of(error), message=str(error)))
        raise


async def report_init_error(runtime_api: str, error: Exception) -> None:
    """Report to Lambda that the function could not start; the caller must then exit."""
    _LOGGER.error("initialisation failed", exc_info=error)
    reported = FunctionError(type=_type_of(error), message=str(error))
    try:
        await RuntimeApi(runtime_api).fail_init(reported)
    except RuntimeApiError as failure:
        _LOGGER.error("initialisation error not reported", exc_info=failure)


class Poller:
    """Answers invocations one at a time; each poller needs its own client."""

    def __init__(
        self, app: ASGIApp, api: RuntimeApi, state: Mapping[str, Any], clock: Clock
    ) -> None:
        self._app = app
        self._api = api
        self._state = state
        self._clock = clock

    async def run(self) -> None:
        """Answer invocations until Lambda cannot be reached, then raise RuntimeApiError."""
        try:
            while True:
                await self._answer(await self._api.next_invocation())
        except Exception as error:
            _LOGGER.error("poller ended", extra={"fields": {"failure": str(error)}})
            raise

    async def _answer(self, invocation: Invocation) -> None:
        try:
            request = read_http_request(invocation)
        except EventError as error:
            refused = FunctionError(type="Runtime.InvalidEvent", message=str(error))
            _LOGGER.error("event refused", extra=_fields(invocation, failure=str(error)))
            await self._api.fail_invocation(invocation, refused)
            return
        stream = self._api.make_response(invocation)
        try:
            if request is None:
                # Lambda may report the outcome of a stream in another invocation, with the event
                # {"invokeCompletionStatus": ...}.
                _LOGGER.debug("event without a request", extra=_fields(invocation))
                await Exchange(b"", stream).reply(200, {})
            else:
                scope, body = request
                scope["state"] = dict(self._state)
                exchange = Exchange(body, stream, bodyless=scope["method"] == "HEAD")
                await self._run_app(scope, exchange, invocation)
            await stream.wait_acknowledged()
        finally:
            stream.close()

    async def _run_app(self, scope: Scope, exchange: Exchange, invocation: Invocation) -> None:
        """Run the application, and end the response if the application leaves it incomplete."""
        running = asyncio.create_task(run(self._app, scope, exchange.receive, exchange.send))
        deadline_s = invocation.deadline_ms / 1000
        try:
            if not await self._ends(running, deadline_s - CANCEL_BEFORE_DEADLINE_S):
                _LOGGER.error("cut off before the deadline", extra=_fields(invocation))
                running.cancel()
                await self._ends(running, deadline_s - _GIVE_UP_BEFORE_DEADLINE_S)
            failure = _failure(running, exchange)
            if failure is not None:
                _LOGGER.error("request failed", exc_info=failure, extra=_fields(invocation))
                await _report(failure, exchange, invocation)
            await asyncio.wait({running})
        finally:
            running.cancel()

    async def _ends(self, running: asyncio.Task[None], until_s: float) -> bool:
        """Return True once the application has ended, or False once the Unix time is reached."""
        timer = asyncio.create_task(self._clock.sleep(max(0.0, until_s - self._clock.now_s())))
        await asyncio.wait({running, timer}, return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        return running.done()


def _failure(running: asyncio.Task[None], exchange: Exchange) -> BaseException | None:
    if not running.done() or running.cancelled():
        return DeadlineReached("the application did not end within its invocation")
    if running.exception() is None and not exchange.complete:
        return IncompleteResponse("the application returned before its response was complete")
    return running.exception()


async def _report(failure: BaseException, exchange: Exchange, invocation: Invocation) -> None:
    """Report a failure to the client, by status 500 or in the trailers of a started response."""
    error = InternalError()
    if exchange.complete:
        return
    if exchange.started:
        await exchange.fail(FunctionError(type=_type_of(failure), message=error.message))
        return
    request_id = invocation.request_id
    envelope = {
        "message": error.message,
        "type": "server_error",
        "code": error.code,
        "param": None,
        "request_id": request_id,
    }
    headers = {"content-type": "application/json", "x-request-id": request_id}
    await exchange.reply(500, headers, to_json({"error": envelope}))


def _type_of(error: BaseException) -> str:
    """Return the type of an error as `category.reason`, which Lambda's guide recommends."""
    return f"Function.{type(error).__name__}"


def _fields(invocation: Invocation, **more: str) -> dict[str, dict[str, str | None]]:
    return {"fields": {**invocation.log_fields(), **more}}

"""The application starts once, and Lambda hears of it when it cannot."""

import json

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.unit.lambda_runtime.peer import Peer
from tests.unit.lambda_runtime.serving import POST, hello, serving, with_lifespan
from tollgate.lambda_runtime.loop import report_init_error, run_loop


async def test_the_application_starts_once_before_the_first_event_and_stops_at_the_end() -> None:
    phases: list[str] = []

    async with Peer(POST, POST) as peer:

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                phases.append("request")
                await hello(scope, receive, send)
                return
            phases.append((await receive())["type"])
            assert peer.requests == []
            await send({"type": "lifespan.startup.complete"})
            phases.append((await receive())["type"])
            await send({"type": "lifespan.shutdown.complete"})

        async with serving(app, peer):
            await peer.ended()
            await peer.ended()
    assert phases == ["lifespan.startup", "request", "request", "lifespan.shutdown"]


async def test_each_request_has_its_own_copy_of_the_lifespan_state() -> None:
    seen: list[dict[str, int]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            scope["state"]["answers"] = 42
            await with_lifespan(hello)(scope, receive, send)
            return
        seen.append(dict(scope["state"]))
        scope["state"]["answers"] = 0
        await hello(scope, receive, send)

    async with Peer(POST, POST) as peer, serving(app, peer):
        await peer.ended()
        await peer.ended()
    assert seen == [{"answers": 42}, {"answers": 42}]


async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no catalog"})


async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("no catalog")


async def ignores(scope: Scope, receive: Receive, send: Send) -> None:
    return


@pytest.mark.parametrize("app", [refuses, breaks, ignores])
async def test_an_application_that_does_not_start_is_reported_and_no_event_is_taken(
    app: ASGIApp,
) -> None:
    async with Peer(POST) as peer:
        with pytest.raises(Exception, match="startup of the application failed"):
            await run_loop(app, peer.address)
        post = await peer.ended()
    assert peer.requests == ["POST /2018-06-01/runtime/init/error"]
    assert post.headers["Lambda-Runtime-Function-Error-Type"] == "Function.LifespanFailed"


async def test_an_import_error_is_reported_with_type_and_message() -> None:
    async with Peer() as peer:
        await report_init_error(peer.address, ImportError("No module named 'x'"))
        post = await peer.ended()
    assert post.path == "/2018-06-01/runtime/init/error"
    assert json.loads(post.raw) == {
        "errorType": "Function.ImportError",
        "errorMessage": "No module named 'x'",
        "stackTrace": [],
    }


async def test_an_init_error_that_cannot_be_reported_is_at_least_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Peer() as peer:
        address = peer.address
    await report_init_error(address, ImportError("x"))
    assert [record.getMessage() for record in caplog.records] == [
        "initialisation failed",
        "initialisation error not reported",
    ]

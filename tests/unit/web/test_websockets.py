"""The WebSocket mode of Responses is not served, and its handshake is refused. Keeps C41, C80."""

import pytest

from tests.asgi import request
from tests.gateways import house
from tests.unit.web.test_api_app import api
from tests.unit.web.test_chat_app import app_of

# Without `upgrade`, as a proxy passes it on.
HANDSHAKE = {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13"}
REFUSED = (426, "websocket_not_served")


@pytest.mark.parametrize("path", ["/v1/responses", "/api/v1/responses/"])
async def test_c80_the_handshake_of_a_websocket_is_refused_with_426(path: str) -> None:
    reply = await request(app_of(await house()), "GET", path, headers=HANDSHAKE)
    assert (reply.status, reply.error["code"]) == REFUSED


async def test_c80_the_function_of_other_methods_refuses_websockets_with_426_too() -> None:
    call = await api()
    reply = await call("GET", "/v1/responses", headers=HANDSHAKE)
    assert (reply.status, reply.error["code"]) == REFUSED
    plain = await call("GET", "/v1/responses")
    assert (plain.status, plain.headers["allow"]) == (405, "OPTIONS, POST")

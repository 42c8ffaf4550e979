"""The ids of API Gateway and of Lambda, from the scope of a request to the record."""

from tests.asgi import request
from tests.gateways import Always, House, house, request_body
from tollgate.core.tracing import PLATFORM_IDS_EXTENSION
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits


async def generate(home: House, extensions: dict[str, dict[str, object]]) -> None:
    """Generate once, on a server whose scopes have these extensions."""
    app = chat_app(home.front, Always(home.gateway), WebLimits(body_bytes_max=20_000))
    headers = {"authorization": f"Bearer {home.secret}"}
    path, body = "/v1/chat/completions", request_body()
    reply = await request(app, "POST", path, headers=headers, body=body, extensions=extensions)
    assert reply.status == 200


async def test_the_ids_of_the_platform_are_in_the_record() -> None:
    home = await house()
    ids = {"api_gateway_request_id": "of-the-gateway", "lambda_request_id": "x" * 300}
    await generate(home, {PLATFORM_IDS_EXTENSION: ids})
    assert home.record.api_gateway_request_id == "of-the-gateway"
    assert home.record.lambda_request_id == "x" * 256


async def test_a_server_without_a_platform_records_no_ids_of_one() -> None:
    home = await house()
    await generate(home, {})
    assert home.record.api_gateway_request_id is None
    assert home.record.lambda_request_id is None

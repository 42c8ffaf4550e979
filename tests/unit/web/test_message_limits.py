"""The limits of a key, in Anthropic's headers beside those of every format.

Keeps C63, C80.
"""

import json
from datetime import datetime

from tests.asgi import request
from tests.gateways import Always, house
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

BODY = {
    "model": "acme/large",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Say hello."}],
}


async def test_c63_c80_limits_are_in_anthropics_headers_beside_the_others() -> None:
    key = NewKey(workspace_id="acme", label="k", tokens_per_minute=50_000)
    home = await house(key=key)
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    reply = await request(
        app,
        "POST",
        "/v1/messages",
        headers={"x-api-key": home.secret, "origin": "https://app.example"},
        body=json.dumps(BODY).encode(),
    )
    assert reply.status == 200
    headers = reply.headers
    for unit in ("requests", "tokens"):
        for name in ("limit", "remaining"):
            ours = headers[f"x-ratelimit-{name}-{unit}"]
            assert headers[f"anthropic-ratelimit-{unit}-{name}"] == ours
        reset = headers[f"anthropic-ratelimit-{unit}-reset"]
        assert f"anthropic-ratelimit-{unit}-reset" in headers["access-control-expose-headers"]
        wait_s = float(headers[f"x-ratelimit-reset-{unit}"].removesuffix("s"))
        until_s = datetime.fromisoformat(reset).timestamp() - home.gateway.clock.now_s()
        assert reset.endswith("Z")
        assert wait_s - 1 <= until_s <= wait_s + 1


async def test_c63_a_key_that_is_over_its_rate_is_told_when_it_may_ask_again() -> None:
    key = NewKey(workspace_id="acme", label="k", requests_per_minute=1, burst=1)
    home = await house(key=key)
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    for expected in (200, 429):
        reply = await request(
            app,
            "POST",
            "/v1/messages",
            headers={"x-api-key": home.secret},
            body=json.dumps(BODY).encode(),
        )
        assert reply.status == expected
    assert reply.headers["anthropic-ratelimit-requests-remaining"] == "0"
    reset = datetime.fromisoformat(reply.headers["anthropic-ratelimit-requests-reset"])
    assert 59 <= reset.timestamp() - home.gateway.clock.now_s() <= 61

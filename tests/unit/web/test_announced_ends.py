"""Replies and lists announce the end of a model. Keeps C3, C27."""

import json
from datetime import UTC, datetime, time, timedelta

import pytest

from tests.asgi import request
from tests.clocks import STARTED_S
from tests.gateways import house
from tests.unit.routing.catalogs import endpoint, model
from tests.unit.web.test_api_app import api
from tests.unit.web.test_chat_app import app_of, bearer
from tollgate.ingress.formats import FORMATS

# The tags of the formats of answers.
ANSWERS = ("chat", "completions", "messages", "responses")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", [each.path for each in FORMATS if each.tag in ANSWERS])
async def test_c27_an_end_that_is_near_is_announced_in_every_format(
    path: str, stream: bool
) -> None:
    retires = datetime.fromtimestamp(STARTED_S, UTC).date() + timedelta(days=30)
    ending = model(
        endpoint("near", "l"),
        deprecated=retires - timedelta(days=60),
        retires=retires,
        successor="acme/new",
    )
    later = model(endpoint("near", "n"), retires=retires + timedelta(days=365))
    home = await house(models={"acme/old": ending, "acme/new": later}, aliases={}, routes={})
    asked = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    if "/responses" in path:
        asked = {"input": "Hi"}
    elif path.endswith("/completions") and "chat" not in path:
        asked = {"prompt": "Hi"}

    async def headers(name: str) -> dict[str, str]:
        body = json.dumps({**asked, "model": name, "stream": stream}).encode()
        reply = await request(app_of(home), "POST", path, headers=bearer(home.secret), body=body)
        assert reply.status == 200
        told = ("deprecation", "sunset", "link")
        return {name: reply.headers[name] for name in told if name in reply.headers}

    noon_s = STARTED_S - STARTED_S % 86_400
    sunset = datetime.combine(retires, time(), UTC)
    assert await headers("acme/old") == {
        "deprecation": f"@{int(noon_s) - 30 * 86_400}",
        "sunset": f"{sunset:%a, %d %b %Y} 00:00:00 GMT",
        "link": '</v1/models/acme/new>; rel="successor-version"',
    }
    assert await headers("acme/new") == {}


async def test_c3_models_tell_their_end_and_leave_the_list_with_it() -> None:
    call = await api()
    today = datetime.fromtimestamp(call.home.stores.clock.now_s(), UTC).date()
    soon, past = today + timedelta(days=9), today - timedelta(days=1)
    models = {
        "acme/ends": model(
            endpoint("near", "e") | {"retires": today},
            endpoint("far", "e"),
            deprecated=past,
            retires=soon,
            successor="acme/new",
        ),
        "acme/gone": model(endpoint("near", "g"), retires=today, successor="acme/new"),
        "acme/handed-on": model(
            endpoint("near", "h"),
            retires=today,
            successor="acme/new",
            after_retirement="successor",
        ),
        "acme/new": model(endpoint("near", "n")),
    }
    routes = {
        "both": {"description": "Both", "try": ("acme/ends", "acme/gone")},
        "one": {"description": "One", "try": ("acme/gone",)},
    }
    call = await api(models=models, aliases={"old": {"to": "acme/gone"}}, routes=routes)
    listed = {it["id"]: it for it in (await call("GET", "/v1/models")).json["data"]}
    assert [*listed] == ["acme/ends", "acme/handed-on", "acme/new", "both"]
    ends = listed["acme/ends"]
    assert ends["deprecation_date"] == past.isoformat()
    assert ends["expiration_date"] == soon.isoformat()
    assert ends["successor"] == "acme/new"
    assert not {"deprecation_date", "expiration_date", "successor"} & listed["both"].keys()
    assert (await call("GET", "/v1/models/old")).json["expiration_date"] == today.isoformat()
    offers = (await call("GET", "/v1/models/acme/ends/endpoints")).json["data"]["endpoints"]
    assert [it.get("expiration_date") for it in offers] == [today.isoformat(), None]

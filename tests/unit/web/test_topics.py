"""Each topic of the api holds the routes below its own steps, and is included with its request."""

from itertools import chain

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from tests.asgi import Exchange, request
from tests.cells import cells
from tests.unit.web.served_api import LIMITS, every_service
from tests.unit.web.test_api_app import api
from tollgate.web.api_app import api_app
from tollgate.web.topics import PAGES, TOPICS, Topic, TopicRoutes, step_of

SERVICES = every_service()


def _paths(*topics: Topic) -> list[str]:
    limit = {"body_bytes_max": 1_000}
    routers = [
        router()(SERVICES, **(limit if topic.has_large_bodies else {}))
        for topic in topics
        for router in topic.routers
    ]
    return [it.path for router in routers for it in router.routes if isinstance(it, APIRoute)]


@cells("topic", TOPICS, ids=lambda it: "-".join(sorted(it.steps)) or "pages")
def test_a_topic_has_the_steps_of_its_routes(topic: Topic) -> None:
    assert {step_of(path) for path in _paths(topic)} == topic.steps


def test_a_request_includes_its_topic_once_and_no_other() -> None:
    app = FastAPI(openapi_url=None)
    topics = TopicRoutes(SERVICES, body_bytes_max=1_000)
    topics.include(app, step_of("/v1/unknown"))
    assert len(app.routes) == 0
    topics.include(app, step_of("/v1/health/live"))
    once = len(app.routes)
    topics.include(app, "health")
    assert len(app.routes) == once == 1
    topics.include(app)
    topics.include(app)
    assert len(app.routes) == len(list(chain.from_iterable(it.routers for it in TOPICS)))


@pytest.mark.parametrize(
    ("path", "step"),
    [("/", PAGES), ("/docs/x.js", PAGES), ("/v1/keys/a", "keys"), ("/v1", PAGES), ("/v1/", PAGES)],
)
def test_the_step_of_a_path(path: str, step: str) -> None:
    assert step_of(path) == step


async def test_an_app_by_topic_answers_as_a_whole_one() -> None:
    services = (await api()).services
    whole = api_app(services, LIMITS, by_topic=False)
    for method, path in (
        ("GET", "/v1/health/live"),
        ("HEAD", "/api/v1/health/live"),
        ("GET", "/v1/keys"),
        ("PUT", "/v1/keys"),
        ("DELETE", "/v1/health/live"),
        ("GET", "/v1/nothing"),
        ("GET", "/nothing"),
        ("POST", "/v1/chat/completions/"),
        ("OPTIONS", "/v1/keys"),
    ):
        by_topic = api_app(services, LIMITS, by_topic=True)
        answer = _told(await request(by_topic, method, path))
        assert answer == _told(await request(whole, method, path)), (method, path)


def _told(reply: Exchange) -> tuple[int, str | None, bytes]:
    """Return what was answered, without the id of its request."""
    body = reply.body.replace(reply.headers["x-request-id"].encode(), b"<id>")
    return reply.status, reply.headers.get("allow"), body

"""The modules of routes by the first step of their paths; each is imported with its first request.

A process on Lambda starts for one request, and making the models and routes of all topics takes
longer than everything else of its start.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fastapi import APIRouter, FastAPI
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.web.services import Services

# The topic of pages, whose paths are outside of /v1.
PAGES: Final = ""


def _keys(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.keys import key_routes

    yield key_routes(services)


def _workspaces(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.keys import workspace_key_routes
    from tollgate.web.routes.members import workspace_member_routes
    from tollgate.web.routes.workspaces import workspace_routes

    yield workspace_routes(services)
    yield workspace_key_routes(services)
    yield workspace_member_routes(services)


def _teams(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.teams import team_routes

    yield team_routes(services)


def _members(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.members import member_routes

    yield member_routes(services)


def _credits(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.credits import credit_routes

    yield credit_routes(services)


def _generations(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.generations import generation_routes

    yield generation_routes(services)


def _activity(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.activity import activity_routes

    yield activity_routes(services)


def _statements(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.statements import statement_routes

    yield statement_routes(services)


def _audit(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.audit import audit_routes

    yield audit_routes(services)


def _webhooks(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.webhooks import webhook_routes

    yield webhook_routes(services)


def _models(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.models import model_routes

    yield model_routes(services)


def _catalogs(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.catalogs import catalog_routes

    yield catalog_routes(services)


def _explanations(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.explanations import explanation_routes

    yield explanation_routes(services)


def _responses(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.responses import response_routes

    yield response_routes(services)


def _health(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.health import health_routes

    yield health_routes(services)


def _pages(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.pages import page_routes
    from tollgate.web.routes.reference import reference_routes

    yield page_routes(services)
    yield reference_routes(services)


def _files(services: Services, body_bytes_max: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.files import file_routes

    yield file_routes(services, body_bytes_max=body_bytes_max)


def _uploads(services: Services, _: int) -> Iterator[APIRouter]:
    from tollgate.web.routes.uploads import part_routes, upload_routes

    yield upload_routes(services)
    yield part_routes(services)


class Topic(Struct, frozen=True):
    """Routes that are made together, and the first steps of their paths below /v1."""

    make: Callable[[Services, int], Iterator[APIRouter]]
    steps: frozenset[str]


# In the order of the OpenAPI document.
TOPICS: Final = (
    Topic(_keys, frozenset({"key", "keys"})),
    Topic(_workspaces, frozenset({"workspace", "workspaces"})),
    Topic(_teams, frozenset({"teams"})),
    Topic(_members, frozenset({"members"})),
    Topic(_credits, frozenset({"credits"})),
    Topic(_generations, frozenset({"generation", "generations"})),
    Topic(_activity, frozenset({"activity", "workspaces"})),
    Topic(_statements, frozenset({"statement", "workspaces"})),
    Topic(_audit, frozenset({"audit"})),
    Topic(_webhooks, frozenset({"webhooks"})),
    Topic(_models, frozenset({"models"})),
    Topic(_catalogs, frozenset({"catalog"})),
    Topic(_explanations, frozenset({"route"})),
    Topic(_responses, frozenset({"responses"})),
    Topic(_health, frozenset({"health"})),
    Topic(_pages, frozenset({PAGES})),
    Topic(_files, frozenset({"files"})),
    Topic(_uploads, frozenset({"uploads"})),
)


def step_of(path: str) -> str:
    """Return the first step of a path below /v1, that of pages for any other path."""
    _, _, below = path.partition("/v1/")
    return below.partition("/")[0] if path.startswith("/v1/") else PAGES


class TopicRoutes:
    """Includes the routes of a topic in an app once a request needs them."""

    def __init__(self, services: Services, *, body_bytes_max: int) -> None:
        self._services = services
        self._body_bytes_max = body_bytes_max
        self._unmade = list(TOPICS)

    def include(self, app: FastAPI, step: str | None = None) -> None:
        """Include the topics of a step that the app lacks; without a step, all of them."""
        for topic in list(self._unmade):
            if step is None or step in topic.steps:
                self._unmade.remove(topic)
                for router in topic.make(self._services, self._body_bytes_max):
                    app.include_router(router)


class IncludeTopic:
    """Middleware that includes the topic of each request; it comes after `CanonicalPath`."""

    def __init__(self, app: ASGIApp, *, topics: TopicRoutes) -> None:
        self._app = app
        self._topics = topics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._topics.include(scope["app"], step_of(scope["path"]))
        await self._app(scope, receive, send)

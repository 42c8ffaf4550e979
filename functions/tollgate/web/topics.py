"""Route modules, keyed by the first segment of their paths; each is imported at its first request.

A process on Lambda starts for a single request, and building the models and routes of all topics
would take longer than the rest of its start.
"""

from collections.abc import Callable
from typing import Final

from fastapi import APIRouter, FastAPI
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.dotted_names import DottedName
from tollgate.web.services import Services

# The topic of pages, whose paths are outside /v1.
PAGES: Final = ""


class Topic(Struct, frozen=True):
    """Routes that are declared together, and the first segments of their paths under /v1."""

    routers: tuple[DottedName[Callable[..., APIRouter]], ...]
    steps: frozenset[str]
    has_large_bodies: bool = False
    """True if a body may be as large as on metered routes (`body_bytes_max`)."""


# The OpenAPI document lists the routes in this order.
TOPICS: Final = (
    Topic((DottedName("tollgate.web.keys.key_routes:key_routes"),), frozenset({"key", "keys"})),
    Topic(
        (
            DottedName("tollgate.web.money.workspace_routes:workspace_routes"),
            DottedName("tollgate.web.keys.key_routes:workspace_key_routes"),
            DottedName("tollgate.web.people.member_routes:workspace_member_routes"),
        ),
        frozenset({"workspace", "workspaces"}),
    ),
    Topic((DottedName("tollgate.web.people.team_routes:team_routes"),), frozenset({"teams"})),
    Topic(
        (
            DottedName("tollgate.web.people.member_routes:member_routes"),
            DottedName("tollgate.web.people.session_routes:session_routes"),
        ),
        frozenset({"members"}),
    ),
    Topic(
        (DottedName("tollgate.web.people.playground_routes:playground_routes"),),
        frozenset({"playground"}),
    ),
    Topic((DottedName("tollgate.web.people.scim_routes:scim_routes"),), frozenset({"scim"})),
    Topic((DottedName("tollgate.web.money.credit_routes:credit_routes"),), frozenset({"credits"})),
    Topic(
        (DottedName("tollgate.web.records.generation_routes:generation_routes"),),
        frozenset({"generation", "generations"}),
    ),
    Topic((DottedName("tollgate.web.records.cache_routes:cache_routes"),), frozenset({"cache"})),
    Topic(
        (DottedName("tollgate.web.records.activity_routes:activity_routes"),),
        frozenset({"activity", "workspaces"}),
    ),
    Topic(
        (DottedName("tollgate.web.money.statement_routes:statement_routes"),),
        frozenset({"statement", "workspaces"}),
    ),
    Topic((DottedName("tollgate.web.records.audit_routes:audit_routes"),), frozenset({"audit"})),
    Topic(
        (
            DottedName("tollgate.web.records.subject_routes:subject_routes"),
            DottedName("tollgate.web.records.subject_routes:workspace_subject_routes"),
        ),
        frozenset({"erasures", "holds", "workspaces"}),
    ),
    Topic(
        (DottedName("tollgate.web.webhooks.webhook_routes:webhook_routes"),),
        frozenset({"webhooks"}),
    ),
    Topic((DottedName("tollgate.web.models.model_routes:model_routes"),), frozenset({"models"})),
    Topic(
        (DottedName("tollgate.web.routing.catalog_routes:catalog_routes"),), frozenset({"catalog"})
    ),
    Topic(
        (DottedName("tollgate.web.routing.explanation_routes:explanation_routes"),),
        frozenset({"route"}),
    ),
    Topic(
        (DottedName("tollgate.web.records.response_routes:response_routes"),),
        frozenset({"responses"}),
    ),
    Topic((DottedName("tollgate.web.health_routes:health_routes"),), frozenset({"health"})),
    Topic(
        (
            DottedName("tollgate.web.pages.page_routes:page_routes"),
            DottedName("tollgate.web.pages.page_routes:reference_routes"),
        ),
        frozenset({PAGES}),
    ),
    Topic(
        (DottedName("tollgate.web.files.file_routes:file_routes"),),
        frozenset({"files"}),
        has_large_bodies=True,
    ),
    Topic(
        (
            DottedName("tollgate.web.files.upload_routes:upload_routes"),
            DottedName("tollgate.web.files.upload_routes:part_routes"),
        ),
        frozenset({"uploads"}),
    ),
    Topic((DottedName("tollgate.web.batches.batch_routes:batch_routes"),), frozenset({"batches"})),
    Topic(
        (DottedName("tollgate.web.batches.message_batch_routes:message_batch_routes"),),
        frozenset({"messages"}),
        has_large_bodies=True,
    ),
    Topic((DottedName("tollgate.web.videos.video_routes:video_routes"),), frozenset({"videos"})),
)


def step_of(path: str) -> str:
    """Return the first segment of a path under /v1, or PAGES for any other path."""
    _, _, below = path.partition("/v1/")
    return below.partition("/")[0] if path.startswith("/v1/") else PAGES


class TopicRoutes:
    """Includes the routes of a topic in an app once a request needs them."""

    def __init__(self, services: Services, *, body_bytes_max: int) -> None:
        self._services = services
        self._body_bytes_max = body_bytes_max
        self._pending = list(TOPICS)

    def include(self, app: FastAPI, step: str | None = None) -> None:
        """Include the topics of a segment that are not in the app yet; without a segment, include
        all topics.
        """
        for topic in list(self._pending):
            if step is None or step in topic.steps:
                self._pending.remove(topic)
                limit = {"body_bytes_max": self._body_bytes_max} if topic.has_large_bodies else {}
                for router in topic.routers:
                    app.include_router(router()(self._services, **limit))


class IncludeTopic:
    """Middleware that includes the topic of each request; must run after `CanonicalPath`."""

    def __init__(self, app: ASGIApp, *, topics: TopicRoutes) -> None:
        self._app = app
        self._topics = topics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._topics.include(scope["app"], step_of(scope["path"]))
        await self._app(scope, receive, send)

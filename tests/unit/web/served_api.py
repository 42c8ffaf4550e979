"""One FastAPI app for all tests of the api: making it costs fifty times what an answer costs."""

from contextvars import ContextVar
from functools import cache
from types import FunctionType, MethodType
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.web.api_app import api_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.services import Services

LIMITS = WebLimits(allowed_origins=("https://app.example",), body_bytes_max=20_000)

_answering: ContextVar[Services] = ContextVar("services of the request that is being answered")


class _OneService:
    """A field of the services, looked up on each use: middleware keeps it from the start."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_answering.get(), self._name), name)


class _EveryService:
    """The services of the request that is being answered, with the methods of Services."""

    def __getattr__(self, name: str) -> Any:
        declared = getattr(Services, name)
        if isinstance(declared, FunctionType):
            return MethodType(declared, self)
        services = _answering.get(None)
        return _OneService(name) if services is None else getattr(services, name)


def every_service() -> Services:
    """Return the services of whichever request is being answered."""
    return cast(Services, _EveryService())


@cache
def _shared_app() -> ASGIApp:
    return api_app(every_service(), LIMITS)


def served(services: Services) -> ASGIApp:
    """Return the api over these services."""
    shared = _shared_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        token = _answering.set(services)
        try:
            await shared(scope, receive, send)
        finally:
            _answering.reset(token)

    return app

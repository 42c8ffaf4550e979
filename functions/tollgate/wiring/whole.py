"""Wires all routes, and the reader of documents, for hosts other than Lambda."""

import pwd
from typing import Final

from starlette.types import ASGIApp

from tollgate.core.clock import Clock
from tollgate.core.documents.reading import DocumentReader, ReaderUnavailable
from tollgate.core.ids import IdSource
from tollgate.engine.gateway import Journal
from tollgate.reading.child_reader import ChildReader
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.web.generation.entrance import Gateways
from tollgate.web.local_app import LocalApp, local_uploads_app
from tollgate.web.services import Catalogs
from tollgate.web.sign_in.sign_in_app import login_app
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.background import wire_background
from tollgate.wiring.files import Files
from tollgate.wiring.generation import Upstream, wire_chat_app
from tollgate.wiring.jobs import JobPollings
from tollgate.wiring.observation import wire_web_limits
from tollgate.wiring.services import wire_services
from tollgate.wiring.shadows import wire_shadows
from tollgate.wiring.sign_in import wire_login_services
from tollgate.wiring.stores import Stores
from tollgate.wiring.videos import wire_videos

_LIMITS_ALONE: Final = "limits alone, since this platform permits no confinement (docs/security.md)"


def wire_local_reader() -> DocumentReader:
    """Return a reader that starts a process for each document."""
    return ChildReader()


async def open_confined_reader(settings: Settings) -> tuple[DocumentReader, str]:
    """Return a reader that runs as the configured user, and a description of its confinement.

    Raises ReaderUnavailable if the user does not exist, or if a process cannot be started.
    """
    name = settings.reader_user
    try:
        user = None if name is None else pwd.getpwnam(name)
    except KeyError as missing:
        raise ReaderUnavailable(f"the user {name} does not exist") from missing
    reader = ChildReader(user=user)
    confinement = await reader.confinement()
    layers = (
        name and f"the user {name}",
        "namespaces without network" if confinement.namespaces else "",
        "a filter of system calls" if confinement.seccomp else "",
    )
    return reader, ", ".join(filter(None, layers)) or _LIMITS_ALONE


def wire_whole_app(
    settings: Settings,
    stores: Stores,
    gateways: Gateways,
    catalogs: Catalogs,
    *,
    upstream: Upstream,
    files: Files | None,
    jobs: JobPollings | None = None,
    clock: Clock,
    journal: Journal,
) -> ASGIApp:
    """Return one app with the routes of all functions, as behind API Gateway."""
    limits, jobs = wire_web_limits(settings), jobs or JobPollings()
    administration = wire_administration(settings, stores, clock)
    services = wire_services(
        stores,
        administration,
        catalogs,
        files=files,
        batch_queue=jobs.batches,
        clock=clock,
        journal=journal,
        find_missing_key=upstream.registry.find_missing_key,
        job_region=settings.job_region,
    )
    chat = wire_chat_app(
        stores,
        gateways,
        limits,
        background=lambda: wire_background(stores, jobs.responses, clock),
        shadows=lambda: wire_shadows(stores, jobs.shadows, clock),
        videos=lambda: wire_videos(stores, jobs.videos, clock),
        clock=clock,
        journal=journal,
    )
    local = None if files is None else files.local
    uploads = None if local is None else local_uploads_app(local, limits, IdSource(clock))
    login = login_app(
        wire_login_services(
            settings,
            stores,
            administration,
            clock=clock,
            journal=journal,
            knows_callers=bool(settings.trusted_proxies),
        ),
        limits,
    )
    return LocalApp(chat, api_app(services, limits), uploads, login)

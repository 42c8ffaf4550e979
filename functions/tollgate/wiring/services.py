"""Wires the services of the API routes over stores that are passed in."""

from collections.abc import Awaitable, Callable

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.secret import CredentialPlace
from tollgate.engine.gateway import Journal
from tollgate.ingress.formats import Ingresses
from tollgate.providers.ports.base import ProviderRow
from tollgate.routing.planning.catalog import Catalog
from tollgate.stores.ports.batches import BatchQueue
from tollgate.tools.ports.base import ServerTools
from tollgate.web.services import Catalogs, Services
from tollgate.wiring.administration import Administration
from tollgate.wiring.background import wire_background
from tollgate.wiring.batch_stores import wire_batch_store
from tollgate.wiring.files import Files
from tollgate.wiring.shadows import wire_shadow_store
from tollgate.wiring.stores import Stores
from tollgate.wiring.videos import wire_videos


def wire_services(
    stores: Stores,
    administration: Administration,
    catalogs: Catalogs,
    *,
    files: Files | None,
    batch_queue: BatchQueue | None,
    clock: Clock,
    journal: Journal,
    find_missing_key: Callable[[ProviderRow], Awaitable[CredentialPlace | None]] | None = None,
    job_region: str | None = None,
) -> Services:
    """Return the services for the API routes.

    `find_missing_key` is for processes that call providers, and finds the places where a missing
    key could be set.
    """
    ids = IdSource(clock)
    formats = Ingresses(ids)
    return Services(
        keys=administration.keys,
        teams=administration.teams,
        members=administration.members,
        sessions=administration.sessions,
        playgrounds=administration.playgrounds,
        workspaces=administration.workspaces,
        credits=administration.credits,
        generations=stores.generations,
        activity=administration.activity,
        statements=administration.statements,
        audit_log=administration.audit_log,
        access_log=administration.access_log,
        webhooks=administration.webhooks,
        subjects=administration.subjects,
        cooldowns=stores.cooldowns,
        contents=stores.contents,
        responses=administration.responses,
        files=None if files is None else files.store,
        uploads=None if files is None else files.uploads,
        batches=None if files is None else wire_batch_store(stores, clock),
        batch_queue=batch_queue,
        background=wire_background(stores, None, clock),
        videos=wire_videos(stores, None, clock),
        shadows=None if stores.contents is None else wire_shadow_store(stores, clock),
        named_files=stores.named_files,
        answers=stores.answers,
        answer_cache=administration.answer_cache,
        catalogs=catalogs,
        publications=stores.publications,
        formats=formats,
        ids=ids,
        journal=journal,
        clock=clock,
        operator_workspace=administration.operator_workspace,
        make_tools=wire_explained_tools(clock),
        find_missing_key=find_missing_key,
        job_region=job_region,
    )


def wire_explained_tools(clock: Clock) -> Callable[[Catalog], ServerTools]:
    """Return a function that creates a catalog's tools for explanations."""

    def make(catalog: Catalog) -> ServerTools:
        # Imported with the first explanation of a request with tools.
        from tollgate.wiring.tools import wire_unrun_tools

        return wire_unrun_tools(catalog, clock)

    return make

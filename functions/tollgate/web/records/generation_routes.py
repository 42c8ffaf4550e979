"""Routes for the records of generations, singly and in lists."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from tollgate.core.clock import DAY_S
from tollgate.core.errors import invalid_request, not_found
from tollgate.core.ids import is_id, without_prefix
from tollgate.core.money.amounts import nano_usd
from tollgate.core.principal import MEMBER_LABEL, Principal
from tollgate.core.records.activity import TEAM_LABEL, GenerationFilter
from tollgate.core.records.generation import GenerationRecord, Outcome
from tollgate.core.shadows import SHADOW_PREFIX
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.stores.ports.batches import BatchPlace
from tollgate.stores.ports.credit import refund_id
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.http.csv_columns import csv_cells, csv_columns
from tollgate.web.http.csv_reply import OR_CSV, Format, csv_reply, wanted_format
from tollgate.web.own import Own
from tollgate.web.records.bill_notes import OTHERS_MAX, list_notes
from tollgate.web.records.generation_parts import ShadowedByObject
from tollgate.web.records.generation_shapes import (
    ContentObject,
    ContentReply,
    GenerationObject,
    GenerationsReply,
)
from tollgate.web.records.openrouter_generation import GenerationReply, OpenRouterGeneration
from tollgate.web.services import Services
from tollgate.web.shapes import Moment, PositiveUsd

_LIMIT_MAX = 1000
_Word = Annotated[str, Field(max_length=128)]
GenerationId = Annotated[str, Query(alias="id", description="with or without its prefix")]


class Selection(BaseModel):
    """Filter of records created in [since, until), by default in the latest period."""

    model_config = ConfigDict(extra="ignore")

    since: Moment | None = None
    until: Moment | None = None
    model: _Word | None = Field(
        None,
        description="model that served; for generations also the requested model, alias or route",
    )
    provider: _Word | None = None
    key: _Word | None = Field(None, description="name or id of a key")
    team: _Word | None = Field(None, description="id of the key's team at that time")
    member: _Word | None = Field(None, description="id of the key's member at that time")
    label: list[_Word] = Field([], max_length=10, description="name:value; every label must match")

    def filter(
        self,
        now_s: int,
        *,
        key_id: str | None,
        own: Own,
        days: int = 1,
        outcome: Outcome | None = None,
        cost_min: PositiveUsd | None = None,
        user: str | None = None,
    ) -> GenerationFilter:
        """Return the filter for the store; if `since` is missing, the period has `days` days.

        `key_id` is the id of the key that `key` names. Raises RequestError for a label that is not
        `name:value`, and for two values of one label.
        """
        until_s = _second(self.until) if self.until else now_s + 1
        return GenerationFilter(
            since_s=_second(self.since) if self.since else until_s - days * DAY_S,
            until_s=until_s,
            model=self.model,
            provider=self.provider,
            key_id=key_id,
            outcome=outcome,
            cost_min_nano_usd=nano_usd(cost_min) if cost_min else 0,
            labels=self._labels(),
            member_id=own.member_id,
            user=user,
        )

    def _labels(self) -> dict[str, str]:
        labels = dict(_label(text) for text in self.label)
        for name, wanted in ((TEAM_LABEL, self.team), (MEMBER_LABEL, self.member)):
            if wanted is None:
                continue
            if labels.setdefault(name, wanted) != wanted:
                raise invalid_request(f"{name}: the label {name} has another value.", name)
        return labels


class GenerationsQuery(Selection):
    """Filter of records, and the page to return."""

    outcome: Outcome | None = None
    cost_min: PositiveUsd | None = Field(None, description="USD")
    user: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="end user as the request stated it"
    )
    limit: Annotated[int, Field(ge=1, le=_LIMIT_MAX)] = 50
    cursor: _Word | None = Field(None, description="the `next_cursor` of the previous page")


def generation_routes(services: Services) -> APIRouter:
    """Return the routes `/v1/generation`, its content and `/v1/generations`."""
    router = admitted_router(services, prefix="/v1", tag="generations")

    @router.get("/generation")
    async def show_generation(
        own: OwnThings,
        id_: GenerationId,
        notes: Annotated[bool, Query(description="true adds sentences about the bill")] = False,
    ) -> GenerationReply:
        """Show a generation of this workspace, which is readable before its stream has ended."""
        record = await find_record(services, own, without_prefix(id_))
        if record is None:
            raise not_found("There is no such generation in this workspace.", "id")
        refund = await services.credits.entry(own.workspace_id, refund_id(record.id))
        refunded = refund.amount_nano_usd if refund else 0
        written = list_notes(record, await _list_earlier(services, own, record)) if notes else None
        shadow = await _find_shadow(services, own, record)
        return GenerationReply(data=OpenRouterGeneration.show(record, refunded, written, shadow))

    @router.get("/generation/content", response_model=ContentReply)
    async def show_content(
        principal: Caller, own: OwnThings, by: By, id_: GenerationId
    ) -> Response:
        """Show the request and the answer, for as many days as the key stores content."""
        bare, content = without_prefix(id_), None
        is_reached = own.is_all or await find_record(services, own, bare) is not None
        if is_reached and is_id(bare) and services.contents is not None:
            content = await services.contents.get(own.workspace_id, bare)
        if content is None:
            raise not_found("No content is stored for this generation.", "id")
        await services.note_read(principal, "content", f"gen-{bare}", by=by)
        check = partial(ContentObject.model_validate_json, content)
        try:
            await services.side.run(own.workspace_id, check, is_large=len(content) > LARGE_BYTES)
        except ValidationError as corrupt:
            raise not_found(f"The stored content of gen-{bare} is corrupt.", "id") from corrupt
        return Response(b'{"data":' + content + b"}", media_type="application/json")

    @router.get("/generations", response_model=GenerationsReply, responses=OR_CSV)
    async def list_generations(
        principal: Caller,
        own: OwnThings,
        query: Annotated[GenerationsQuery, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> GenerationsReply | Response:
        """List generations, newest first, as JSON or CSV; an inference key lists its own."""
        wanted = query.filter(
            services.now_s(),
            key_id=await _listed_key_id(services, principal, query.key, own),
            own=own,
            outcome=query.outcome,
            cost_min=query.cost_min,
            user=query.user,
        )
        page = await services.generations.page(
            own.workspace_id, wanted, limit=query.limit, before=_cursor(query.cursor)
        )
        next_ = None if page.next is None else f"gen-{page.next}"
        if format_ == "csv":
            rows = map(csv_cells, map(GenerationObject.of, page.found))
            columns = csv_columns(GenerationObject)
            return csv_reply(columns, rows, next_=next_, unreadable=page.unreadable)
        return GenerationsReply(
            data=[GenerationObject.of(record) for record in page.found],
            next_cursor=next_,
            unreadable=list(page.unreadable),
        )

    return router


async def find_record(services: Services, own: Own, generation_id: str) -> GenerationRecord | None:
    """Return the record of a generation that the caller may reach; None if there is none."""
    if not is_id(generation_id):
        return None
    record = await services.generations.get(own.workspace_id, generation_id)
    return record if record is not None and own.has_record(record) else None


async def _list_earlier(
    services: Services, own: Own, record: GenerationRecord
) -> Sequence[GenerationRecord]:
    """Return up to 200 successful generations of the record's key on the day before it."""
    wanted = GenerationFilter(
        since_s=record.created_s - DAY_S,
        until_s=record.created_s,
        key_id=record.key_id,
        outcome="ok",
        member_id=own.member_id,
    )
    page = await services.generations.page(own.workspace_id, wanted, limit=OTHERS_MAX, before=None)
    return page.found


async def _find_shadow(
    services: Services, own: Own, original: GenerationRecord
) -> ShadowedByObject | None:
    """Return the shadow of a generation whose run is still stored; None if there is none."""
    if services.shadows is None or original.trace.route is None:
        return None
    catalog = await services.catalogs.for_key(original.key_id)
    route = catalog.routes.get(original.trace.route)
    if route is None or route.shadow is None:
        return None
    place = BatchPlace(original.workspace_id, SHADOW_PREFIX + original.id)
    run = await services.shadows.get(place)
    if run is None or run.shadow_id is None:
        return None
    payer_id = route.shadow.workspace
    # A run that was refused has no generation.
    shadow = await services.generations.get(payer_id, run.shadow_id)
    if shadow is None or shadow.shadow is None or shadow.shadow.generation_id != original.id:
        return None
    return ShadowedByObject(
        generation_id=f"gen-{shadow.id}",
        is_readable=payer_id == own.workspace_id and own.has_record(shadow),
    )


async def _listed_key_id(
    services: Services, principal: Principal, key: str | None, own: Own
) -> str | None:
    """Return the id of the key whose generations are listed; None for all keys.

    For a key without a member, `own` would select every key, so an inference key lists only itself.
    """
    if principal.role != "inference":
        return await services.find_key_id(key, own)
    if key not in (None, principal.key_id, principal.label):
        raise not_found("An inference key lists only its own generations.", "key")
    return principal.key_id


def _cursor(text: str | None) -> str | None:
    if text is None:
        return None
    bare = without_prefix(text)
    if not is_id(bare):
        raise invalid_request("cursor: this is not a cursor of this list.", "cursor")
    return bare


def _label(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise invalid_request("label: must be name:value.", "label")
    return name, value


def _second(moment: datetime) -> int:
    return int(moment.timestamp())

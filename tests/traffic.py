"""Recorded traffic as the engine would leave it, without an engine."""

from tollgate.core.records.generation import GenerationRecord, total_nano_usd
from tollgate.core.usage import Usage
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest, draw_key_hash
from tollgate.routing.price import bill
from tollgate.web.records.generation_shapes import GenerationObject

# 2026-11-21, 12:30:01 UTC.
RECORDED_S = 1795264201


def planning_request(asked: str, number: int, **wanted: object) -> PlanningRequest:
    """What the request of a number asks for; without a session its id decides its draw."""
    sizes = {"input_tokens_min": 100, "input_tokens": 150, "input_tokens_max": 300}
    return PlanningRequest(
        model=asked,
        draw_key_hash=draw_key_hash(f"r-{number}"),
        **{"tier": "team", **sizes, **wanted},  # type: ignore[arg-type]  # by the names of its fields
    )


def record(
    catalog: Catalog, asked: PlanningRequest, number: int, *, tokens: tuple[int, int] = (1_000, 500)
) -> GenerationRecord:
    """The record of a request that the first endpoint of its plan answered, an hour apart."""
    created_s = RECORDED_S + 3_600 * number
    plan = Planner(catalog).plan(asked, now_s=created_s)
    target, prices = plan.attempts[0].target, plan.attempts[0].prices
    usage = Usage(uncached_input_tokens=tokens[0], output_tokens=tokens[1])
    lines = bill(usage, prices.at(created_s, tokens[0]))
    return GenerationRecord(
        id=f"{number:015}",
        created_s=created_s,
        workspace_id="team",
        key_id=f"key-{number % 3}",
        key_label=f"k{number % 3}",
        outcome="ok",
        streamed=True,
        catalog_sha=catalog.sha,
        trace=plan.trace,
        model=target.model,
        provider=target.provider,
        upstream_model=target.upstream_model,
        usage=usage,
        usage_source="provider",
        cost_nano_usd=total_nano_usd(lines),
        lines=lines,
    )


def line(record: GenerationRecord) -> bytes:
    """A record as a gateway lists it."""
    return GenerationObject.of(record).model_dump_json().encode() + b"\n"

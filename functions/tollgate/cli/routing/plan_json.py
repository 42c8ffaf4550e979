"""JSON output for a review; amounts are exact strings."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import to_builtins
from pydantic_core import to_json

from tollgate.core.money.amounts import usd_text
from tollgate.routing.review.replay import CostedRequest, Flow, TrafficReplay
from tollgate.routing.review.review import Review

_Json: TypeAlias = Mapping[str, object] | None


def as_data(review: Review) -> str:
    """Render a review as JSON."""
    return to_json(
        {
            "base": review.base,
            "head": review.head,
            "base_is_empty": review.base_is_empty,
            "label": review.label,
            "errors": [to_builtins(problem) for problem in review.errors],
            "changes": [to_builtins(change) for change in review.changes],
            "secret_moves": [to_builtins(move) for move in review.secret_moves],
            "deploy_first": review.deploy_first,
            "promises": [
                {"route": found.route, **to_builtins(found.breaks)} for found in review.promises
            ],
            "keys_affected": review.keys_affected,
            "replay": _replay(review.replay),
        },
        indent=2,
    ).decode()


def _replay(replay: TrafficReplay | None) -> _Json:
    if replay is None:
        return None
    return {
        "requests": replay.requests,
        "unplanned": replay.unplanned,
        "as_recorded": replay.as_recorded,
        "recorded_usd": usd_text(replay.recorded_nano_usd),
        "first_s": replay.first_s,
        "last_s": replay.last_s,
        "served": _flow(replay.served),
        "later": [{"day": day, **_flow(flow)} for day, flow in replay.later.items()],
        "moves": [
            {"asked": requested, "before": before, "after": after, **_flow(flow)}
            for (requested, before, after), flow in replay.moves.items()
        ],
        "repriced": [
            {"endpoint": endpoint, **_flow(flow)} for endpoint, flow in replay.repriced.items()
        ],
        "refused": [
            {"asked": requested, "code": code, **_flow(flow)}
            for (requested, code), flow in replay.refused.items()
        ],
        "admitted": [
            {"asked": requested, **_flow(flow)} for requested, flow in replay.admitted.items()
        ],
        "undecided": [
            {"metadata": metadata, **_flow(flow)} for metadata, flow in replay.undecided.items()
        ],
        "batched": _flow(replay.batched),
        "shadows": [{"route": route, **_flow(flow)} for route, flow in replay.shadows.items()],
        "cached_prompt_tokens": {
            "of": replay.cached.prompt_tokens,
            "before": replay.cached.before,
            "after": replay.cached.after,
        },
        "refused_by_both": replay.refused_by_both,
        "dearest_before": _single(replay.dearest_before),
        "dearest_after": _single(replay.dearest_after),
        "worst": _single(replay.worst),
        "keys": [
            {"id": id_, "name": key.name, "requests": key.requests, "affected": key.affected}
            for id_, key in replay.keys.items()
        ],
    }


def _flow(flow: Flow) -> dict[str, object]:
    return {"requests": flow.requests, **_costs(flow)}


def _single(single: CostedRequest | None) -> _Json:
    if single is None:
        return None
    return {"id": single.id, "asked": single.requested, **_costs(single)}


def _costs(costs: Flow | CostedRequest) -> dict[str, object]:
    return {
        "before_usd": usd_text(costs.before_nano_usd),
        "after_usd": usd_text(costs.after_nano_usd),
    }

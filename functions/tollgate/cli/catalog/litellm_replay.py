"""Replay of an import: the endpoints of each source name, before and after."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.cli.catalog.source_names import SourceName
from tollgate.cli.routing.chat_body import Described
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.ingress.chat_completions.parse import parse
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner, Survey
from tollgate.routing.planning.planning_request import PlanningRequest

_LONG_PROMPT: Final = 60_000
_LONG_ANSWER: Final = 8_000
_SHAPES: Final[Mapping[str, Described]] = {
    "plain": Described(),
    "tools": Described(has=("tools",)),
    "image": Described(has=("image",)),
    "long": Described(prompt_tokens=_LONG_PROMPT, output_tokens_max=_LONG_ANSWER),
}
_CALLER: Final = Principal(key_id="import", workspace_id="import", role="inference", label="import")


class ReplayedName(Struct, frozen=True, kw_only=True):
    """Endpoints that serve some requests to a name, before and after an import."""

    name: str
    shapes: tuple[str, ...]
    before: str
    after: str
    changed: str = ""
    """The difference from the source; empty if there is none."""
    wildcard: str = ""
    """The wildcard of the source that the name matches; empty if the source states the name."""


def replay_names(
    catalog: Catalog, sources: Sequence[SourceName], now_s: float
) -> Iterator[ReplayedName]:
    """Yield the endpoints that serve each name: for chat models, of four different requests.

    Requests to a name with the same result share an entry. LiteLLM sends each request to a
    deployment of the name, and to a fallback after an error. A name for another kind of work has
    one entry, with its imported endpoints.
    """
    planner = Planner(catalog)
    requests = {
        shape: parse(described.body({"model": "any"})).request
        for shape, described in _SHAPES.items()
    }
    for source in sources:
        shapes: dict[tuple[str, str], list[str]] = {}
        if source.kind != "chat":
            shapes[_imported(source)] = [f"{source.kind} request"]
        for shape, request in requests.items() if source.kind == "chat" else ():
            shapes.setdefault(_judge(planner, source, request, now_s), []).append(shape)
        for (after, changed), names in shapes.items():
            yield ReplayedName(
                name=source.name,
                shapes=tuple(names),
                before=_before(source),
                after=after,
                changed=changed,
                wildcard=source.wildcard,
            )


def _imported(source: SourceName) -> tuple[str, str]:
    """Return the imported endpoints of a name, and the difference from the source."""
    endpoints = [each.endpoint for each in source.offers if each.endpoint is not None]
    return ", ".join(dict.fromkeys(endpoints)) or "refused", _left_out(source)


def _left_out(source: SourceName) -> str:
    missing = [each.model for each in source.offers if each.endpoint is None]
    return f"not imported: {', '.join(missing)}" if missing else ""


def _before(source: SourceName) -> str:
    first = ", ".join(dict.fromkeys(each.model for each in source.offers))
    return f"{first}; then {', '.join(source.fallbacks)}" if source.fallbacks else first


def _judge(
    planner: Planner, source: SourceName, request: GenerationRequest, now_s: float
) -> tuple[str, str]:
    """Return what serves a request after the import, and the difference from the source."""
    # Draws are keyed by the name; any key would do, because every endpoint is listed. A session
    # keeps draws of long requests equal to those of short ones.
    named = replace(
        request,
        model=source.name,
        preferences=replace(request.preferences, session_id=source.name),
    )
    wanted = PlanningRequest.of(named, principal=_CALLER, request_id=source.name)
    survey = planner.survey(wanted, now_s=now_s)
    own = {each.endpoint for each in source.offers if each.endpoint is not None}
    reasons = "; ".join(
        dict.fromkeys(
            f"{each.attempt.target.model} {each.exclusion.reason}"
            for each in survey.candidates
            if each.exclusion is not None and each.attempt.target.endpoint_id in own
        )
    )
    if survey.plan is None:
        return "refused", reasons or _left_out(source) or _refusal(survey)
    tried = list(dict.fromkeys(each.target.endpoint_id for each in survey.plan.attempts))
    first, then = [it for it in tried if it in own], [it for it in tried if it not in own]
    after = "; then ".join(", ".join(each) for each in (first, then) if each)
    if tried[0] not in own:
        return after, f"another model serves: {reasons or 'nothing was imported for this name'}"
    if own - set(tried):
        return after, f"some of its deployments do not serve: {reasons}"
    if missing := _left_out(source):
        return after, missing
    if request.output_tokens_max is not None:
        limits = [each.target.output_tokens_max or 0 for each in survey.plan.attempts]
        if min(limits) < request.output_tokens_max:
            return after, f"some answers end at {min(limits):,} tokens"
    return after, ""


def _refusal(survey: Survey) -> str:
    return str(survey.refusal.code) if survey.refusal else ""

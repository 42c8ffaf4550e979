"""From a request to the endpoints that will be tried, in order, and what it can cost at most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Final

from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.generation import RoutingTrace
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.providers.base import Target, Timeouts
from tollgate.routing.catalog import Catalog, Chain
from tollgate.routing.price import Price, cost_max_nano_usd

# Nothing here counts tokens, so one figure for each use: the bound must hold for dense text too,
# the estimate is for English, and the filter must not refuse what might fit.
_BYTES_PER_TOKEN_MIN: Final = 2
_BYTES_PER_TOKEN_TYPICAL: Final = 4
_BYTES_PER_TOKEN_MAX: Final = 6

_FORMS_OF_TENSORZERO: Final = ("tensorzero::model_name::", "tensorzero::function_name::")
_SHOWN_CHARACTERS_MAX: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often one endpoint is tried again, and how long to wait in between."""

    retries_max: int = 2
    backoff_min_s: float = 0.25
    backoff_max_s: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One endpoint to try, with its price and its limits."""

    target: Target
    price: Price
    timeouts: Timeouts
    retry: Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the planner decided: never empty.

    `next_on` are the error codes that move on to the next attempt; `cost_max_nano_usd` bounds the
    dearest attempt, `tokens_max` is what the longest counts for against tokens per minute.
    """

    attempts: Sequence[Attempt]
    next_on: frozenset[ErrorCode]
    cost_max_nano_usd: int
    tokens_max: int
    catalog_sha: str
    trace: RoutingTrace


class Planner:
    """Plans requests against one catalog; pure, and good for any number of them."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._attempts = _attempts_of_models(catalog)

    def plan(
        self,
        request: GenerationRequest,
        *,
        principal: Principal,
        request_id: str,
        fallbacks: bool = True,
    ) -> Plan:
        """The attempts for a request, best first.

        Without `fallbacks` only the first model of a chain is kept, with all its endpoints.
        Raises RequestError (model_not_found, invalid_request for what no model of the chain can
        do, context_length_exceeded) or AccessError (model_not_allowed).
        """
        name = _without_form(request.model)
        chain = self._chain(name)
        models = chain.models if fallbacks else chain.models[:1]
        models = _allowed(models, name, principal)
        models = self._capable(models, request)
        models = self._roomy(models, request)
        attempts = tuple(attempt for model in models for attempt in self._attempts[model])
        estimated_input_tokens = request.size_bytes // _BYTES_PER_TOKEN_TYPICAL
        return Plan(
            attempts=attempts,
            next_on=chain.next_on,
            cost_max_nano_usd=max(
                self._cost_max_nano_usd(attempt, request) for attempt in attempts
            ),
            tokens_max=estimated_input_tokens
            + max(self._output_tokens_max(attempt, request) for attempt in attempts),
            catalog_sha=self.catalog.sha,
            trace=RoutingTrace(
                requested_model=request.model,
                route=chain.route,
                rule=None,
                draw_key_hash=sha256(request_id.encode()).hexdigest()[:16],
                tier=principal.tier,
                capabilities=tuple(sorted(request.capabilities)),
                estimated_input_tokens=estimated_input_tokens,
                output_tokens_max=request.output_tokens_max,
            ),
        )

    def _chain(self, name: str) -> Chain:
        chain = self.catalog.chain(name)
        if chain is None:
            nearest = self.catalog.nearest(name)
            hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
            raise RequestError(
                ErrorCode.MODEL_NOT_FOUND,
                f"There is no model, alias or route named {_shown(name)}.{hint}",
                param="model",
            )
        return chain

    def _capable(self, models: tuple[str, ...], request: GenerationRequest) -> tuple[str, ...]:
        capable = tuple(
            model
            for model in models
            if request.capabilities <= set(self.catalog.models[model].supports)
        )
        if not capable:
            missing = request.capabilities - set(self.catalog.models[models[0]].supports)
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{_shown(request.model)} does not support {', '.join(sorted(missing))}.",
                param="model",
            )
        return capable

    def _roomy(self, models: tuple[str, ...], request: GenerationRequest) -> tuple[str, ...]:
        """The models whose context may hold the prompt; in doubt the provider decides."""
        input_tokens_min = request.size_bytes // _BYTES_PER_TOKEN_MAX
        roomy = tuple(
            model for model in models if input_tokens_min <= self.catalog.models[model].context
        )
        if not roomy:
            context_max = max(self.catalog.models[model].context for model in models)
            raise RequestError(
                ErrorCode.CONTEXT_LENGTH_EXCEEDED,
                f"The request has at least {input_tokens_min} tokens by its size, and "
                f"{_shown(request.model)} takes {context_max}.",
                param="messages",
            )
        return roomy

    def _cost_max_nano_usd(self, attempt: Attempt, request: GenerationRequest) -> int:
        model = self.catalog.models[attempt.target.model]
        return cost_max_nano_usd(
            min(-(-request.size_bytes // _BYTES_PER_TOKEN_MIN), model.context),
            self._output_tokens_max(attempt, request),
            attempt.price,
        )

    def _output_tokens_max(self, attempt: Attempt, request: GenerationRequest) -> int:
        """What is asked for, or else held; the upstream is not limited to the latter."""
        wanted = request.output_tokens_max
        return min(
            self.catalog.defaults.hold_output_tokens if wanted is None else wanted,
            self.catalog.models[attempt.target.model].max_output,
        )


def _attempts_of_models(catalog: Catalog) -> Mapping[str, tuple[Attempt, ...]]:
    """Every endpoint of every model, made once: they are the same for each request."""
    retry = Retry(
        retries_max=catalog.defaults.retry.retries_max,
        backoff_min_s=catalog.defaults.retry.backoff_min_s,
        backoff_max_s=catalog.defaults.retry.backoff_max_s,
    )
    timeouts = catalog.defaults.timeouts.attempt
    return {
        slug: tuple(
            Attempt(
                target=Target(
                    provider=endpoint.provider,
                    model=slug,
                    upstream_model=endpoint.upstream,
                    dialect=catalog.providers[endpoint.provider].dialect,
                    output_tokens_max=model.max_output,
                ),
                price=endpoint.price.price,
                timeouts=timeouts,
                retry=retry,
            )
            for endpoint in model.endpoints
        )
        for slug, model in catalog.models.items()
    }


def _allowed(models: tuple[str, ...], requested: str, principal: Principal) -> tuple[str, ...]:
    """The models a key may use: those it names, or all of an alias or a route that it names."""
    globs = principal.models
    if globs is None or _matches(requested, globs):
        return models
    allowed = tuple(model for model in models if _matches(model, globs))
    if not allowed:
        raise AccessError(
            ErrorCode.MODEL_NOT_ALLOWED,
            f"This key may not use {_shown(requested)}.",
            param="model",
        )
    return allowed


def _without_form(name: str) -> str:
    for form in _FORMS_OF_TENSORZERO:
        if name.startswith(form):
            return name.removeprefix(form)
    return name


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _shown(name: str) -> str:
    """A caller's word, short enough to repeat."""
    if len(name) > _SHOWN_CHARACTERS_MAX:
        return f"{name[:_SHOWN_CHARACTERS_MAX]}..."
    return name

"""Parses legacy completion requests; each prompt becomes a conversation with one message."""

from collections.abc import Iterator

from tollgate.core.content import Text
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.completions.wire.completion_request import (
    ANSWERS_MAX,
    OUTPUT_TOKENS_DEFAULT,
    CompletionRequest,
)
from tollgate.ingress.shared.fields import (
    extra_fields,
    parse_guided,
    parse_preferences,
    parse_preset,
    parse_sampling,
    printable_names,
    unknown_preferences,
)
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.validation import validate_body


def parse_completion(body: bytes) -> ParsedCall:
    """Parse a request; raise RequestError with the field at fault."""
    params = validate_body(CompletionRequest, body)
    _check(params)
    prompts = [params.prompt] if isinstance(params.prompt, str) else params.prompt
    # Log probabilities of the prompt must come from the provider; a plain echo is rendered here.
    probed = bool(params.echo) and params.logprobs is not None
    first, *further = ((UserMessage(content=(Text(text=prompt),)),) for prompt in prompts)
    preset = parse_preset(params)
    request = GenerationRequest(
        model=preset.model,
        preset=preset.slug,
        preset_variables=preset.variables,
        messages=first,
        further=tuple(further),
        suffix=params.suffix or None,
        echo=probed,
        output_tokens_max=params.max_tokens or OUTPUT_TOKENS_DEFAULT,
        sampling=parse_sampling(
            params,
            logprobs=None if params.logprobs is None else True,
            top_logprobs=params.logprobs or None,
        ),
        choices=params.n or 1,
        guided=parse_guided(params),
        user=params.user,
        metadata=params.metadata or {},
        preferences=parse_preferences(params),
        size_bytes=len(body),
    )
    return ParsedCall(
        request=request,
        stream=bool(params.stream),
        usage_on=params.usage_on,
        echoes=bool(params.echo) and not probed,
        episode_id=params.episode_id,
        ignored=printable_names(_unknown(params)),
    )


def _check(params: CompletionRequest) -> None:
    """Raise RequestError if fields contradict each other or request too many answers."""
    choices = params.n or 1
    if params.best_of is not None and params.best_of != choices:
        raise field_refusal("best_of", f"must be {choices}, the value of n, or be omitted")
    prompts = 1 if isinstance(params.prompt, str) else len(params.prompt)
    if prompts * choices > ANSWERS_MAX:
        raise field_refusal(
            "prompt", f"must ask for at most {ANSWERS_MAX} answers, not {prompts} times {choices}"
        )


def _unknown(params: CompletionRequest) -> Iterator[str]:
    yield from extra_fields(params)
    yield from extra_fields(params.stream_options, "stream_options.")
    yield from unknown_preferences(params)

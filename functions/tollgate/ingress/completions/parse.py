"""Parses a legacy completion request; each prompt becomes a conversation of one user message."""

from collections.abc import Iterator

from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import GenerationRequest, Message, UserMessage
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.completions.wire.completion_request import (
    ANSWERS_MAX,
    OUTPUT_TOKENS_DEFAULT,
    CompletionRequest,
)
from tollgate.ingress.shared.fields import parse_guided, parse_sampling
from tollgate.ingress.shared.ignored_fields import extra_fields, printable_names
from tollgate.ingress.shared.preferences import parse_preferences, unknown_preferences
from tollgate.ingress.validation import validate_body


def parse_completion(body: bytes) -> ParsedCall:
    """Parse a request; raise RequestError with the field at fault."""
    wire_request = validate_body(CompletionRequest, body)
    _check(wire_request)
    prompts = [wire_request.prompt] if isinstance(wire_request.prompt, str) else wire_request.prompt
    # Only the provider has the log probabilities of a prompt; the renderer can write a plain echo.
    probed = bool(wire_request.echo) and wire_request.logprobs is not None
    first, *further = map(_conversation, prompts)
    request = GenerationRequest(
        model=wire_request.model,
        messages=first,
        further=tuple(further),
        suffix=wire_request.suffix or None,
        echo=probed,
        output_tokens_max=wire_request.max_tokens or OUTPUT_TOKENS_DEFAULT,
        sampling=parse_sampling(
            wire_request,
            logprobs=None if wire_request.logprobs is None else True,
            top_logprobs=wire_request.logprobs or None,
        ),
        choices=wire_request.n or 1,
        guided=parse_guided(wire_request),
        user=wire_request.user,
        metadata=wire_request.metadata or {},
        preferences=parse_preferences(wire_request),
        size_bytes=len(body),
    )
    return ParsedCall(
        request=request,
        stream=bool(wire_request.stream),
        usage_on_finish=wire_request.usage_on == "finish",
        echoes=bool(wire_request.echo) and not probed,
        episode_id=wire_request.episode_id,
        ignored=printable_names(_unknown(wire_request)),
    )


def _conversation(prompt: str) -> tuple[Message, ...]:
    return (UserMessage(content=(Text(text=prompt),)),)


def _check(wire_request: CompletionRequest) -> None:
    """Raise RequestError if fields contradict each other, or request too many answers."""
    choices = wire_request.n or 1
    if wire_request.best_of is not None and wire_request.best_of != choices:
        raise _refused("best_of", f"must be {choices}, the value of n, or be left out")
    prompts = 1 if isinstance(wire_request.prompt, str) else len(wire_request.prompt)
    if prompts * choices > ANSWERS_MAX:
        raise _refused(
            "prompt", f"may have at most {ANSWERS_MAX} answers, not {prompts} times {choices}"
        )


def _unknown(wire_request: CompletionRequest) -> Iterator[str]:
    yield from extra_fields(wire_request)
    if wire_request.stream_options:
        yield from extra_fields(wire_request.stream_options, "stream_options.")
    yield from unknown_preferences(wire_request)


def _refused(param: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{param} {what}.", param=param)

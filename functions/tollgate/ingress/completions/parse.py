"""Parses a legacy completion request: each prompt is a conversation of one user message."""

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
    asked = validate_body(CompletionRequest, body)
    _check(asked)
    prompts = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
    # The probabilities of a prompt are its provider's; a plain echo is written by the renderer.
    probed = bool(asked.echo) and asked.logprobs is not None
    first, *further = map(_conversation, prompts)
    request = GenerationRequest(
        model=asked.model,
        messages=first,
        further=tuple(further),
        suffix=asked.suffix or None,
        echo=probed,
        output_tokens_max=asked.max_tokens or OUTPUT_TOKENS_DEFAULT,
        sampling=parse_sampling(
            asked,
            logprobs=None if asked.logprobs is None else True,
            top_logprobs=asked.logprobs or None,
        ),
        choices=asked.n or 1,
        guided=parse_guided(asked),
        user=asked.user,
        metadata=asked.metadata or {},
        preferences=parse_preferences(asked),
        size_bytes=len(body),
    )
    return ParsedCall(
        request=request,
        stream=bool(asked.stream),
        usage_on_finish=asked.usage_on == "finish",
        echoes=bool(asked.echo) and not probed,
        episode_id=asked.episode_id,
        ignored=printable_names(_unknown(asked)),
    )


def _conversation(prompt: str) -> tuple[Message, ...]:
    return (UserMessage(content=(Text(text=prompt),)),)


def _check(asked: CompletionRequest) -> None:
    """Raise RequestError for fields that contradict each other, or ask for too much together."""
    choices = asked.n or 1
    if asked.best_of is not None and asked.best_of != choices:
        raise _refused("best_of", f"must be {choices}, the value of n, or be left out")
    prompts = 1 if isinstance(asked.prompt, str) else len(asked.prompt)
    if prompts * choices > ANSWERS_MAX:
        raise _refused(
            "prompt", f"must have at most {ANSWERS_MAX} answers, not {prompts} times {choices}"
        )


def _unknown(asked: CompletionRequest) -> Iterator[str]:
    yield from extra_fields(asked)
    if asked.stream_options:
        yield from extra_fields(asked.stream_options, "stream_options.")
    yield from unknown_preferences(asked)


def _refused(param: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{param} {what}.", param=param)

"""Encodes generation requests as prompts, in OpenAI's legacy completions format."""

from typing import Final

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.core.request import GenerationRequest
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.parameters import stated_parameters, unsupported
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.efforts import wants_thoughts
from tollgate.providers.shared.openai_writing import limit_fields, path_of

_PATH: Final = "/completions"
# OpenAI's maximum number of alternatives for a token; some other servers accept more.
_ALTERNATIVES_MAX: Final = 5
# Two parameters that become one field of the body.
_LOG_PROBS: Final = frozenset({"logprobs", "top_logprobs"})


def encode(request: GenerationRequest, target: Target, format_: WireFormat) -> WireRequest:
    """Return the request for `POST {base_url}/completions`, always streamed.

    Raises RequestError for content that a prompt cannot express, such as a conversation.
    """
    dialect = target.dialect
    for need in sorted(request.needs - dialect.met):
        field = "messages" if need == "conversation" else need
        raise _refused(field, "is not accepted by this model's provider")
    for guide in () if dialect.guided else request.guided:
        raise _refused(guide, "is not supported by this model's provider")
    parameters = stated_parameters(request)
    accepted = format_.parameters.difference(dialect.refuses)
    body: dict[str, JsonValue] = {
        "model": target.upstream_model,
        "prompt": request.prompts[0],
        "stream": True,
        **limit_fields(request, target),
        **{name: value for name, value in parameters.items() if name in accepted - _LOG_PROBS},
        **request.guided,
    }
    sent = {*body}
    if request.suffix is not None:
        body["suffix"] = request.suffix
    if request.echo:
        body["echo"] = True
    if request.sampling.logprobs and "logprobs" in accepted:
        alternatives = request.sampling.top_logprobs or 0
        body["logprobs"] = min(alternatives, _ALTERNATIVES_MAX)
        sent |= _LOG_PROBS if alternatives <= _ALTERNATIVES_MAX else {"logprobs"}
    thinks = request.reasoning is not None and wants_thoughts(request.reasoning)
    return WireRequest(
        path=path_of(target, _PATH),
        body=body,
        adapted=(*unsupported(request, sent, parameters), *(("reasoning",) if thinks else ())),
    )


def _refused(param: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{param} {what}.", param=param)

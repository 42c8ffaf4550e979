"""Turns the refusals of providers into public errors, first by their status and then by their code.

The operator is at fault for a key, an account, a model name or a path that the provider refuses.
Then 401, 402 and 403 become `provider_auth`, 404 and similar statuses `provider_unavailable`, the
next endpoint of a chain may serve, and the caller does not see the provider's message. For another
4xx the caller is at fault. The error is `invalid_request`, with the provider's message after
redaction of everything that may be a key, an address or a piece of the prompt. The engine has
the request, and withholds whatever else repeats the prompt (`engine/withheld.py`).
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from msgspec import Struct

from tollgate.core.errors import ErrorCode, Overlength, UpstreamError
from tollgate.core.escapes import resolve_escapes
from tollgate.core.json_value import JsonValue

_BY_STATUS: Final = {
    401: (ErrorCode.PROVIDER_AUTH, "did not accept our credentials"),
    402: (ErrorCode.PROVIDER_AUTH, "requires a payment for our account"),
    403: (ErrorCode.PROVIDER_AUTH, "does not permit our account to do this"),
    404: (ErrorCode.PROVIDER_UNAVAILABLE, "does not know the requested model or path"),
    405: (ErrorCode.PROVIDER_UNAVAILABLE, "does not serve this path"),
    408: (ErrorCode.PROVIDER_TIMEOUT, "timed out"),
    410: (ErrorCode.PROVIDER_UNAVAILABLE, "no longer serves this model or path"),
    424: (ErrorCode.PROVIDER_UNAVAILABLE, "failed while the model was answering"),
    429: (ErrorCode.PROVIDER_RATE_LIMIT, "limits our rate"),
    503: (ErrorCode.PROVIDER_OVERLOADED, "is overloaded"),
    504: (ErrorCode.PROVIDER_TIMEOUT, "timed out"),
    529: (ErrorCode.PROVIDER_OVERLOADED, "is overloaded"),
}

# A hint that the account may lack access to a model, because AWS has no separate error code for
# this case. Bedrock user guide, "Request access to models" (2026-11-22).
_BEDROCK_ACCESS: Final = (
    " If Amazon Bedrock refuses the model, your account may lack an AWS Marketplace subscription "
    "(created by the first use in Bedrock's playground) or the first-use form for Anthropic's "
    "models; see `tollgate doctor`."
)
_HINTS: Final = {
    "accessdeniedexception": _BEDROCK_ACCESS,
    "resourcenotfoundexception": _BEDROCK_ACCESS,
}

_CONTEXT_CODES: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "too_many_prompt_tokens"}
)
_FILTER_CODES: Final = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
        "invalid_prompt",
        # This code is for OpenAI's images: https://github.com/Wei-Shaw/sub2api/pull/2399
        # (2026-11-22).
        "moderation_blocked",
    }
)
_RATE_CODES: Final = frozenset({"insufficient_quota", "rate_limit_exceeded"})
_AUTH_CODES: Final = frozenset({"authentication_error", "invalid_api_key"})

# Several providers answer an oversized prompt with status 400 and a code that says only "invalid".
# The `_WORDING` patterns therefore match the provider's message, if status and code do not decide.
# The first patterns are from recorded replies of, in this order: Anthropic; Bedrock Nova; Vertex;
# DeepSeek, OpenRouter, OpenAI and Ollama. The others are from public reports (seen 2026-11-21)
# about Anthropic, for prompt and answer together; Responses; xAI; Groq.
_CONTEXT_WORDING: Final = re.compile(
    r"prompt is too long|input is too long|input tokens exceeded"
    r"|input token count .{0,40}exceeds the maximum"
    r"|max(?:imum)? context length|exceed context limit|exceeds the context window"
    r"|maximum prompt length is|reduce the length of the messages",
    re.IGNORECASE,
)

# Patterns for the prompt's length and the limit in these messages. These numbers tell callers by
# how much to shorten their prompts. The patterns are, in order, for Anthropic and its hosts;
# Gemini; OpenAI and its imitators, whose messages name the limit first.
_LENGTHS: Final = (
    re.compile(r"(?P<tokens>\d{1,9}) tokens > (?P<most>\d{1,9})"),
    re.compile(r"token count \((?P<tokens>\d{1,9})\).{0,80}allowed \((?P<most>\d{1,9})\)"),
    re.compile(
        r"context length (?:is|of) (?P<most>\d{1,9}) tokens.{0,80}?(?P<tokens>\d{1,9}) tokens",
        re.DOTALL,
    ),
)

# xAI and Google's OpenAI-compatible API refuse an unknown key with status 400 and without a code;
# some messages are percent-encoded: https://github.com/continuedev/continue/issues/10778,
# https://github.com/i-am-bee/beeai-framework/issues/447 (seen 2026-11-21). Only the
# beginning of a message is compared, because the rest may quote the caller.
_AUTH_WORDING: Final = re.compile(
    r"incorrect(?: |%20)api(?: |%20)key(?: |%20)provided|api key not valid", re.IGNORECASE
)

_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")

# Anthropic has no code for a filtered answer:
# https://github.com/anthropics/claude-code/issues/58367.
_FILTER_WORDING: Final = re.compile(r"blocked by content filtering policy", re.IGNORECASE)

# The provider's message is redacted by patterns, because the request is not available here.
MESSAGE_LENGTH_MAX: Final = 300
# The length limit for the provider's message in the record, which is redacted a second time by code
# with access to the request.
_KEPT_LENGTH_MAX: Final = 2000
_INPUT_LENGTH_MAX: Final = 4096
# A longer quotation is not the name of a field, a model or a value, but may be part of the prompt.
_LONG: Final = 48

# Whole addresses, because the user part, the path and the query may contain secrets.
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://\S+", re.IGNORECASE)

_CUTS: Final = (
    (_ADDRESS, "[url]"),
    # Literal objects and lists, such as the rejected part of a request; an index like `[12]` stays.
    (re.compile(rf"\{{.{{{_LONG},}}(?:\}}|$)|\[(?!\d{{1,4}}\]).{{{_LONG},}}(?:\]|$)"), "[...]"),
    # Long quotations.
    (re.compile(rf"(?P<q>[\"'`])(?:(?!(?P=q)).){{{_LONG},}}(?:(?P=q)|$)"), "[...]"),
    (re.compile(rf"“[^”]{{{_LONG},}}(?:”|$)"), "[...]"),
    # A word such as `bearer` or `token`, and the secret after it.
    (re.compile(r"\b(?:bearer|basic)\s+\S+", re.IGNORECASE), "[redacted]"),
    (
        re.compile(
            r"(?<![A-Za-z])(?:(?:api|access|secret|account)?[ _-]?key(?:[ _-]?id)?"
            r"|(?:access|auth|id|refresh|session)?token|(?:client)?secret|pass(?:word|wd)?|cookie"
            r"|authorization|sig(?:nature)?|credential)\b(?:\s+provided)?[\"']?\s*[:=]\s*\S+",
            re.IGNORECASE,
        ),
        "[redacted]",
    ),
    # The query of an address without a scheme.
    (re.compile(r"\?[\w.-]+=\S+"), "[redacted]"),
    # Well-known forms of keys, including masked keys.
    (
        re.compile(
            r"\b(?:sk|pk|rk|gsk|xai|key|hf|ghp|github_pat|nvapi|csk|fw|r8|tgp|pplx)[-_][\w*.-]{6,}"
            r"|\b(?:AKIA|ASIA|AIza|eyJ)[\w*.-]{8,}"
        ),
        "[redacted]",
    ),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "[redacted]"),
    # A long run of mixed letters and digits, which is neither a word nor the name of a model.
    (re.compile(r"(?<![\w+/=])(?=[\w+/=]*\d)(?=[\w+/=]*[A-Za-z])[\w+/=]{20,}"), "[redacted]"),
    (re.compile(r"(?<!\S)\S*\*{3,}\S*"), "[redacted]"),
    # Identifiers of accounts: ARNs, the twelve digits in them, Google's projects, e-mail addresses.
    (
        re.compile(
            r"\barn:aws[\w-]*:\S+|(?<!\d)\d{12}(?!\d)|\bprojects/[\w.:-]+"
            r"|[\w.+-]+@[\w-]+\.[\w.-]+"
        ),
        "[redacted]",
    ),
)

_MARKUP: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)

# Exceptions of parsers for data that is not UTF-8 or JSON, of another shape, or nested too deep.
UNREADABLE: Final = (ValueError, RecursionError)


class ProviderRefusal(Struct, frozen=True, kw_only=True):
    """A refusal that a codec has read; the provider's code is in lower case."""

    provider: str
    status: int | None
    message: str = ""
    code: str = ""
    retry_after_s: float | None = None


def error_of_refusal(refusal: ProviderRefusal) -> UpstreamError:
    """Return the public error for a refusal."""
    code, words = _meaning(refusal)
    quoted = redact(refusal.message).rstrip(".") if code is ErrorCode.INVALID_REQUEST else ""
    words = f"{words}: {quoted}" if quoted else words
    status = f" (HTTP {refusal.status})" if refusal.status is not None else ""
    error = UpstreamError(
        code,
        f"The provider {refusal.provider} {words}{status}.{_HINTS.get(refusal.code, '')}",
        status=refusal.status,
        retry_after_s=refusal.retry_after_s,
        provider_words=redact(
            ": ".join(filter(None, (refusal.code, refusal.message))), _KEPT_LENGTH_MAX
        ),
        quoted=quoted,
    )
    if code is ErrorCode.CONTEXT_LENGTH_EXCEEDED:
        error.overlength = _overlength(refusal.message[:_INPUT_LENGTH_MAX])
    return error


def _overlength(message: str) -> Overlength | None:
    for pattern in _LENGTHS:
        if lengths := pattern.search(message):
            return Overlength(tokens=int(lengths["tokens"]), tokens_max=int(lengths["most"]))
    return None


def redact_body(body: bytes) -> str:
    """Return the redacted text of a reply that no codec can read, such as a proxy's page."""
    text = body[: 4 * _INPUT_LENGTH_MAX].decode(errors="replace")
    return redact(_MARKUP.sub(" ", text), _KEPT_LENGTH_MAX)


def _meaning(refusal: ProviderRefusal) -> tuple[ErrorCode, str]:
    status = refusal.status
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is None or status >= 500 or status < 400:
        return ErrorCode.PROVIDER_UNAVAILABLE, "failed"
    if refusal.code in _RATE_CODES:
        return _BY_STATUS[429]
    if refusal.code in _AUTH_CODES or _AUTH_WORDING.match(refusal.message):
        return _BY_STATUS[401]
    if refusal.code in _FILTER_CODES or _FILTER_WORDING.search(refusal.message):
        return ErrorCode.CONTENT_FILTER, "filtered the request"
    if refusal.code in _CONTEXT_CODES or _CONTEXT_WORDING.search(refusal.message):
        return ErrorCode.CONTEXT_LENGTH_EXCEEDED, "does not accept a prompt of this length"
    return ErrorCode.INVALID_REQUEST, "refused the request"


def redact(message: str, length_max: int = MESSAGE_LENGTH_MAX) -> str:
    """Return one line of at most `length_max` characters, without secrets and long quotations."""
    # Addresses are cut before escapes are resolved, which could split an address.
    text = _ADDRESS.sub("[url]", message[:_INPUT_LENGTH_MAX])
    text = " ".join(resolve_escapes(text)[:_INPUT_LENGTH_MAX].split())
    text = "".join(character for character in text if character.isprintable())
    for pattern, replacement in _CUTS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= length_max else text[: length_max - 3] + "..."


def parse_retry_after_s(headers: Mapping[str, str], details: JsonValue = None) -> float | None:
    """Return the seconds to wait before a retry, from headers with lower-case names.

    A date is compared with the reply's `date`. Without a header, Google's `details` are read.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None and milliseconds > 0:
        return milliseconds / 1000
    text = headers.get("retry-after")
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        delay = parsedate_to_datetime(text or "") - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return _retry_delay_s(details)
    return max(0.0, delay.total_seconds())


def _retry_delay_s(details: JsonValue) -> float | None:
    """Return the delay in a google.rpc.RetryInfo (`34.4s`) in seconds; None without one."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        seconds = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
        if seconds:
            return float(seconds[1])
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text) else None


def malformed_error(provider: str, what: str) -> UpstreamError:
    """Return the error for a provider that sent `what`, which violates the format."""
    return UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, f"The provider {provider} sent {what}.")


def early_close_error(provider: str) -> UpstreamError:
    """Return the error for a stream that closed before the answer was complete."""
    return UpstreamError(
        ErrorCode.PROVIDER_UNAVAILABLE,
        f"The stream of the provider {provider} closed before the end.",
    )

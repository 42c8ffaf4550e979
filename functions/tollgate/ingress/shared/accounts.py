"""Rendering, for all formats, of a reply's accounts: usage, cost, model, provider and routing."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from msgspec import Struct
from pydantic_core import to_json

from tollgate.core.errors import GatewayError
from tollgate.core.events import Started
from tollgate.core.json_value import JsonValue
from tollgate.core.money.amounts import credits_text, usd_text
from tollgate.core.records.generation import GenerationRecord
from tollgate.ingress.base import ParsedCall, Routed, ServedBy
from tollgate.ingress.errors import openai_error, tollgate_metadata

_DONE: Final = b"data: [DONE]\n\n"


class ReplyAccounts(Struct, frozen=True):
    """Renders the accounts of one reply, which are known only at its end."""

    served: ServedBy
    credits_per_usd: Decimal
    tells_routing: bool
    usage: Callable[[GenerationRecord], dict[str, JsonValue]]
    """The function that returns the usage object in the format of the reply."""

    def render_failure(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render an error and the accounts as fields of a JSON object, without the outer braces."""
        error_object = openai_error(error, self.served.generation_id)
        return b'"error":%b,%b' % (to_json(error_object), self.render(record))

    def render(self, record: GenerationRecord) -> bytes:
        """Render the accounts as fields of a JSON object, without the outer braces."""
        facts: dict[str, JsonValue] = {
            "model_used": record.model,
            "provider_used": record.provider,
        }
        if self.served.fallback_from is not None:
            facts["fallback_from"] = self.served.fallback_from
            facts["fallback_depth"] = self.served.fallback_depth
        if record.adapted:
            facts["adapted"] = list(record.adapted)
        if self.tells_routing:
            facts["tollgate_metadata"] = tollgate_metadata(Routed.of(record))
        # Amounts are written as decimals, because a float cannot represent all nano-dollar amounts.
        cost = record.cost_nano_usd
        return b'"usage":%b,"cost":%b},"credits_used":%b,%b' % (
            to_json(self.usage(record))[:-1],
            usd_text(cost).encode(),
            credits_text(cost, self.credits_per_usd).encode(),
            to_json(facts)[1:-1],
        )


def write_usage(record: GenerationRecord) -> dict[str, JsonValue]:
    """Return the usage object of OpenAI's newer formats, such as Responses."""
    usage = record.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens or 0,
            "cache_write_tokens": usage.cache_write_input_tokens,
        },
        "output_tokens": usage.output_tokens or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens,
    }


class CompletionFrames(ABC):
    """The base class of the renderers of chat completions and legacy completions."""

    def __init__(
        self, call: ParsedCall, served: ServedBy, *, episode_id: str, credits_per_usd: Decimal
    ) -> None:
        self._served = served
        self._episode_id = episode_id
        self._accounts = ReplyAccounts(served, credits_per_usd, call.tells_routing, _usage)
        self._usage_on_finish = call.usage_on == "finish"
        self._finish = b""
        self._head = self._frame_head(Started())

    def close(self, record: GenerationRecord) -> bytes:
        frame = self._finish if self._usage_on_finish else self._head + b',"choices":[]'
        return b"%b,%b}\n\n%b" % (frame, self._accounts.render(record), _DONE)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the last frames of a stream that failed after the commit point.

        The frame has no `choices`, because some clients ignore an error next to `choices` and show
        the partial answer as complete (C33).
        """
        return b"%b,%b}\n\n%b" % (self._head, self._accounts.render_failure(error, record), _DONE)

    @abstractmethod
    def _envelope(self, started: Started, *, streamed: bool) -> dict[str, JsonValue]:
        """Return the first fields of a stream frame (`streamed`) or of a non-streamed reply."""

    def _frame_head(self, started: Started) -> bytes:
        return b"data: " + to_json(self._envelope(started, streamed=True))[:-1]

    def _finish_frame(self, frame: bytes) -> bytes:
        """Return the finish frame of a choice.

        With `usage_on_finish`, `close` must add the usage to the last finish frame. So each frame
        is held back, and the finish frame of the previous choice is returned.
        """
        if self._usage_on_finish:
            frame, self._finish = self._finish, frame
        return frame and frame + b"}\n\n"

    def _whole(self, started: Started, choices: list[bytes], record: GenerationRecord) -> bytes:
        """Render the body of a non-streamed reply; `choices` are JSON."""
        return b'%b,"choices":[%b],%b}' % (
            to_json(self._envelope(started, streamed=False))[:-1],
            b",".join(choices),
            self._accounts.render(record),
        )


def _usage(record: GenerationRecord) -> dict[str, JsonValue]:
    usage = record.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens or 0,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens or 0,
            "cache_write_tokens": usage.cache_write_input_tokens,
            "audio_tokens": usage.audio_input_tokens or 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens or 0,
            "audio_tokens": usage.audio_output_tokens or 0,
        },
    }

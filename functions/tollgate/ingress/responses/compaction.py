"""Compaction of a conversation, and the item that holds the result.

The gateway seals its compaction items. When a client sends an item back, three things replace it:
the kept messages that `input` does not repeat, the record as a message (or the item of a provider
that compacted), and an answer with calls that still await their outputs.
https://developers.openai.com/api/docs/guides/compaction (2026-11-27), and the code of Codex.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import from_json, to_json

from tollgate.core.compaction import FOREWORD, Compacted, Compaction
from tollgate.core.content import Provenance
from tollgate.core.errors import RequestError
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import GenerationRequest, Message
from tollgate.core.signers import GATEWAY
from tollgate.ingress.base import Seal
from tollgate.ingress.responses.stored import TakenItems, check_items
from tollgate.ingress.responses.wire import input_items as wire
from tollgate.ingress.responses.wire.response_request import ContextManagement
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.record_request import ask_for_record

# The content of providers never has this prefix, because base64 contains no dots.
_SEALED: Final = "tollgate2."
# The prefix of sealed content with a provider's item, which makes earlier releases refuse the item.
_SEALED_ITEM: Final = "tollgate3."
# The default of `compact_threshold`, equal to the default trigger of Anthropic's compaction.
# https://platform.claude.com/docs/en/build-with-claude/compaction (2026-11-27)
_THRESHOLD_TOKENS: Final = 150_000
# The size limit of the users' messages that are kept unchanged: about 64,000 tokens, as in Codex.
KEPT_BYTES_MAX: Final = 256 * 1024
_LEFT_OUT: Final = "[a file that is described in the record was here]"


class OpenedInput(Struct, frozen=True, kw_only=True):
    """The items of a request, with each compaction item replaced by what it contains."""

    taken: TakenItems
    """The parsed items. `stored_form` contains compaction items, still sealed."""
    raws: Sequence[JsonObject]
    """The same items as JSON objects."""
    is_compacted: bool
    """True if the request ended with a compaction trigger, which the items do not include."""
    only_provider: str | None = None
    """The provider that compacted the conversation, if only it can read the result."""


class _Sealed(Struct, frozen=True, kw_only=True):
    """The content of a compaction item; `content` and `provider` are those of `Compacted`."""

    record: str
    kept: list[msgspec.Raw]
    """The user's messages, instructions and tools, unchanged."""
    awaiting: list[msgspec.Raw]
    """The last answer and the outputs of its calls, if any of these calls still awaits its
    output.
    """
    covers: bool
    """True if the item also replaces the items before it, in case the client still sends them."""
    content: str | None = None
    provider: str | None = None


class Compacting(Struct, frozen=True, kw_only=True):
    """A conversation that is being compacted."""

    head: Sequence[tuple[str, wire.Item]]
    """The items that the record summarizes."""
    kept: tuple[JsonObject, ...]
    awaiting: tuple[JsonObject, ...]
    seal: Seal
    covers: bool = False

    def pack(self, compacted: Compacted, generation_id: str) -> Provenance:
        """Return the compaction item with the result of a generation."""
        content = {
            "record": compacted.record,
            "content": compacted.content,
            "provider": compacted.provider,
            "kept": self.kept,
            "awaiting": self.awaiting,
            "covers": self.covers,
        }
        sealed = self.seal.close(to_json(content), generation_id)
        prefix = _SEALED if compacted.content is None else _SEALED_ITEM
        return Provenance(signer=GATEWAY, data=prefix + sealed, is_compaction=True)


def open_input(taken: TakenItems, seal: Seal | None) -> OpenedInput:
    """Return the input with each compaction item replaced by its content.

    `seal` is None if the workspace's key was not read, such as for the explanation of a route.
    Raises RequestError if this workspace cannot read an item, or if a trigger is not the last item.
    """
    items: list[tuple[str, wire.Item]] = []
    raws: list[JsonObject] = []
    stored_form = list(taken.stored_form)
    only_provider: str | None = None
    is_compacted, added_bytes = False, taken.added_bytes
    for number, ((path, item), raw) in enumerate(zip(taken.items, taken.stored_form, strict=True)):
        match item:
            case wire.CompactionTrigger():
                if number != len(taken.items) - 1:
                    raise field_refusal(path, "must be the last item of `input`")
                if seal is None:
                    raise _unreadable(path)
                is_compacted = True
                stored_form.pop()
            case wire.CompactionItem():
                sealed = _unseal(item, path, seal)
                if sealed.covers:
                    # Counted from the end, because earlier items may have been removed already.
                    only_provider = None
                    items, raws, stored_form = [], [], stored_form[number - len(taken.items) :]
                only_provider = _only_reader(only_provider, sealed.provider, path)
                content = [*_content(sealed, raws)]
                items += ((path, inner) for inner in check_items(content, path))
                raws += content
                added_bytes += _sizes(content) - len(item.encrypted_content)
            case _:
                items.append((path, item))
                raws.append(raw)
    opened = replace(taken, items=items, stored_form=tuple(stored_form), added_bytes=added_bytes)
    return OpenedInput(
        taken=opened, raws=raws, is_compacted=is_compacted, only_provider=only_provider
    )


def begin_compaction(opened: OpenedInput, seal: Seal | None) -> Compacting | None:
    """Return the compaction that a request triggers; None if it has no trigger."""
    if not opened.is_compacted or seal is None:
        return None
    items = opened.taken.items
    end = _awaiting_from(items)
    return Compacting(
        head=items[:end],
        kept=_kept(items[:end], opened.raws[:end]),
        awaiting=tuple(opened.raws[end:]),
        seal=seal,
    )


class Window(Struct, frozen=True, kw_only=True):
    """Implements `ingress.base.RecordWindow` for a request with `context_management`."""

    tokens_max: int
    packer: Compacting
    recent: Sequence[tuple[str, wire.Item]]
    """The user's newest messages, which are answered rather than compacted."""
    request: GenerationRequest
    """The request without compaction."""
    replaced_bytes: int
    parse: Callable[[Sequence[tuple[str, wire.Item]]], tuple[Message, ...]]
    """Parses items into messages."""
    pauses: bool = False
    left_to: str | None = None

    def ask(self) -> GenerationRequest:
        """Return the request for the record."""
        return ask_for_record(replace(self.request, messages=self.parse(self.packer.head)))

    def resume(self, compacted: Compacted) -> GenerationRequest:
        """Return the request for the answer, with the result in place of the older items."""
        raws = (*self.packer.kept, _replacement(compacted.record, compacted.content))
        items = [("input", item) for item in check_items(raws, "input")]
        size_bytes = self.request.size_bytes - self.replaced_bytes + _sizes(raws)
        return replace(
            self.request,
            messages=self.parse([*items, *self.recent]),
            compaction=compaction_read_by(compacted.provider),
            size_bytes=max(0, size_bytes),
        )


def watch_window(
    opened: OpenedInput,
    seal: Seal | None,
    rules: Sequence[ContextManagement] | None,
    *,
    request: GenerationRequest,
    parse: Callable[[Sequence[tuple[str, wire.Item]]], tuple[Message, ...]],
) -> Window | None:
    """Return the rule for compacting a conversation before its answer.

    Returns None if there is no rule or no seal (see `open_input`), if the request triggers a
    compaction anyway, or if the conversation has no older items.
    """
    if not rules or seal is None or opened.is_compacted:
        return None
    items = opened.taken.items
    end = _recent_from(items)
    if not end:
        return None
    head, raws = items[:end], opened.raws[:end]
    packer = Compacting(head=head, kept=_kept(head, raws), awaiting=(), seal=seal, covers=True)
    return Window(
        tokens_max=rules[0].compact_threshold or _THRESHOLD_TOKENS,
        packer=packer,
        recent=items[end:],
        request=request,
        replaced_bytes=_sizes(raws),
        parse=parse,
    )


def compaction_read_by(provider: str | None) -> Compaction | None:
    """Return the facts for a conversation that only one provider can read; None if all can."""
    return None if provider is None else Compaction(only_provider=provider)


def _unseal(item: wire.CompactionItem, path: str, seal: Seal | None) -> _Sealed:
    path = f"{path}.encrypted_content"
    if not item.encrypted_content.startswith((_SEALED, _SEALED_ITEM)):
        raise field_refusal(path, "was not created by this gateway")
    if seal is None:
        raise _unreadable(path)
    content = seal.open(item.encrypted_content.partition(".")[2])
    if content is None:
        raise field_refusal(
            path, "cannot be read: it was changed, or it was sealed for another workspace"
        )
    return msgspec.json.decode(content, type=_Sealed)


def _content(sealed: _Sealed, before: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the items that replace a compaction item; `before` are the items before it."""
    present = {_texts_of(item) for item in before}
    stored = (from_json(bytes(raw)) for raw in sealed.kept)
    yield from (item for item in stored if _texts_of(item) not in present)
    yield _replacement(sealed.record, sealed.content)
    yield from (from_json(bytes(raw)) for raw in sealed.awaiting)


def _replacement(record: str, content: str | None) -> JsonObject:
    """Return the record as a message, or the item of the provider that compacted."""
    if content is not None:
        return {"type": "compaction", "encrypted_content": content}
    return {"role": "user", "content": FOREWORD + record}


def _only_reader(earlier: str | None, provider: str | None, path: str) -> str | None:
    if earlier and provider and earlier != provider:
        raise field_refusal(
            path, f"was compacted by {provider}, and an earlier item by {earlier}: send one of them"
        )
    return provider or earlier


def _unreadable(path: str) -> RequestError:
    return field_refusal(path, "cannot be decrypted for an explanation of a route")


def _awaiting_from(items: Sequence[tuple[str, wire.Item]]) -> int:
    """Return the index at which the answer with the first open call begins, or the length.

    An open call has no output yet.
    """
    calls: dict[str, int] = {}
    start = 0
    for place, (_, item) in enumerate(items):
        match item:
            case wire.FunctionCallItem() | wire.CustomToolCallItem():
                calls[item.call_id] = start
            case wire.CallOutputItem():
                calls.pop(item.call_id, None)
                start = place + 1
            case wire.MessageItem(role="user" | "system" | "developer"):
                start = place + 1
            case _:
                pass
    return min(calls.values(), default=len(items))


def _recent_from(items: Sequence[tuple[str, wire.Item]]) -> int:
    """Return the index from which on there are only instructions and user messages."""
    for place in range(len(items), 0, -1):
        match items[place - 1][1]:
            case wire.MessageItem(role="user" | "system" | "developer"):
                pass
            case _:
                return place
    return 0


def _kept(
    items: Sequence[tuple[str, wire.Item]], raws: Sequence[JsonObject]
) -> tuple[JsonObject, ...]:
    """Return the items to keep: instructions, tools, and the user's newest messages.

    If the files of a message do not fit, the message is kept without them.
    """
    chosen: list[JsonObject] = []
    room_bytes = KEPT_BYTES_MAX
    for (_, item), raw in zip(reversed(items), reversed(raws), strict=True):
        match item:
            case wire.MessageItem(role="system" | "developer") | wire.AddedToolsItem():
                chosen.append(raw)
            case wire.MessageItem(role="user") if room_bytes and not _is_record(raw):
                forms = (form for form in (raw, _without_files(raw)) if _size(form) <= room_bytes)
                message = next(forms, None)
                # After a message that does not fit, including older messages could mislead the
                # model.
                room_bytes = 0 if message is None else room_bytes - _size(message)
                chosen += [message] if message else []
            case _:
                pass
    return tuple(reversed(chosen))


def _is_record(raw: JsonObject) -> bool:
    content = raw.get("content")
    return isinstance(content, str) and content.startswith(FOREWORD)


def _without_files(raw: JsonObject) -> JsonObject:
    """Return a message with a note in place of each inline file."""
    content = raw.get("content")
    if not isinstance(content, list):
        return raw
    parts: list[JsonValue] = [
        {"type": "input_text", "text": _LEFT_OUT} if _is_inline(part) else part for part in content
    ]
    return {**raw, "content": parts}


def _is_inline(part: JsonValue) -> bool:
    if not isinstance(part, dict):
        return False
    url = part.get("image_url")
    return "file_data" in part or (isinstance(url, str) and url.startswith("data:"))


def _texts_of(raw: JsonObject) -> tuple[str, ...]:
    """Return the role and texts of a message, to recognize a repeated message."""
    content = raw.get("content")
    if raw.get("type") not in (None, "message"):
        return (to_json(raw).decode(),)
    parts = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    texts = [str(part.get("text")) if isinstance(part, dict) else str(part) for part in parts]
    return str(raw.get("role")), *(text for text in texts if text not in ("None", _LEFT_OUT))


def _size(raw: JsonObject) -> int:
    return len(to_json(raw))


def _sizes(raws: Iterable[JsonObject]) -> int:
    return sum(map(_size, raws))

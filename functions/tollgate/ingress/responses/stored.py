"""Stored responses: their encoding, and the stored items that later requests use.

A response is stored with its whole input, including earlier turns, so a single read returns the
whole conversation. The id of a stored item contains the id of its generation.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Self

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field
from pydantic import RootModel
from pydantic_core import ValidationError, from_json, to_json

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import is_id
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.ownership import OwnerScope
from tollgate.ingress.responses.wire import response_request as wire
from tollgate.ingress.responses.wire.input_items import Item, ItemReference
from tollgate.ingress.shared.media import field_refusal

PREVIOUS: Final = "previous_response_id"
ENABLE_STORAGE: Final = "enable storage with `tollgate keys update NAME --response-days 7`"
_STORE_OR_SEND: Final = (
    f"{ENABLE_STORAGE}, or send the earlier items themselves, as clients do with `store: false`"
)
HOW_TO_STORE: Final = f"Responses of this key are not stored: {_STORE_OR_SEND}."
_RESPONSE_ID: Final = "resp_"
_ITEM_ID: Final = re.compile(r"[a-z]+_(?P<generation>.{15})_i?[0-9]{1,6}", re.ASCII)
# Prefixes of OpenAI's item ids, by item type.
_PREFIXES: Final[Mapping[str, str]] = {
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "function_call": "fc",
    "function_call_output": "fco",
    "message": "msg",
    "reasoning": "rs",
}


class StoredItems(RootModel[list[Item]]):
    """The items in a stored response, validated like the items in a request."""


class StoredResponse(Struct, frozen=True, kw_only=True):
    """A response as sent, and the items in its input (with earlier turns) and output."""

    response: bytes
    input: Sequence[JsonObject]
    output: Sequence[JsonObject]
    status: str = "completed"
    owner: str | UnsetType | None = UNSET
    """`Principal.owner` of the key that created the response; unset if an older version stored the
    response."""

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Decode a stored response; raise ValueError if the bytes are corrupt."""
        pieces = msgspec.json.decode(stored, type=_Pieces)
        answer = msgspec.json.decode(pieces.response, type=_Answer)
        return cls(
            response=bytes(pieces.response),
            input=_read_items(pieces.input),
            output=_read_items(answer.output),
            status=answer.status,
            owner=pieces.owner,
        )

    def is_reached(self, reach: OwnerScope) -> bool:
        """Return whether a caller may continue the response.

        The whole workspace continues responses of older versions until they expire.
        """
        return self.owner is UNSET or reach.has(self.owner)

    @property
    def conversation(self) -> tuple[JsonObject, ...]:
        """The items in the input, followed by the items in the answer."""
        return (*self.input, *self.output)


class _Pieces(Struct, frozen=True):
    response: Raw
    input: list[Raw]
    owner: str | UnsetType | None = UNSET


class _Answer(Struct, frozen=True):
    output: list[Raw]
    status: str = "completed"


def encode_stored(
    response: bytes, input_: Sequence[JsonObject], *, owner: str | None = None
) -> bytes:
    """Encode a response as sent, with the items in its input and its owner."""
    pieces = (response, b",".join(map(to_json, input_)), to_json(owner))
    return b'{"response":%b,"input":[%b],"owner":%b}' % pieces


def _read_items(raws: Iterable[Raw]) -> tuple[JsonObject, ...]:
    """Decode items with pydantic, which unlike msgspec supports integers of any length."""
    items = tuple(from_json(bytes(raw)) for raw in raws)
    if not all(isinstance(item, dict) for item in items):
        raise ValueError("an item is not an object")
    return items


class StoredTurns(Struct, frozen=True, kw_only=True):
    """Stored items that a request uses."""

    earlier: Sequence[JsonObject] = ()
    """The items of the earlier turns."""
    referenced: Mapping[str, JsonObject] = field(default_factory=dict)
    """The items that the input references, by id."""

    @property
    def has_compactions(self) -> bool:
        """True if one of the items is a compaction item."""
        items = chain(self.earlier, self.referenced.values())
        return any(item.get("type") == "compaction" for item in items)


class TakenItems(Struct, frozen=True, kw_only=True):
    """The items in a request, including items from stored responses."""

    items: Sequence[tuple[str, Item]]
    """The items in order, each preceded by its field path."""
    stored_form: tuple[JsonObject, ...]
    """The same items, in the form to store."""
    left_out: Sequence[ItemReference]
    """References to reasoning items that were not stored; they are reported as ignored."""
    added_bytes: int
    """The size of the stored items, which the request body does not contain."""


def response_generation(id_: str) -> str | None:
    """Return the generation id in a response id; None if the text is not a response id."""
    bare = id_.removeprefix(_RESPONSE_ID)
    return bare if id_.startswith(_RESPONSE_ID) and is_id(bare) else None


def references_of(input_: object) -> Iterator[tuple[str, str | None]]:
    """Yield the item ids that an input references, each with the generation id in it.

    The input is not validated yet. The generation id is None if Tollgate did not create the id.
    """
    for item in input_ if isinstance(input_, list) else ():
        if not isinstance(item, dict) or item.get("type") not in (None, "item_reference"):
            continue
        id_ = item.get("id")
        if isinstance(id_, str) and "role" not in item:
            match = _ITEM_ID.fullmatch(id_)
            generation = match["generation"] if match else None
            yield id_, generation if generation and is_id(generation) else None


def take_items(
    params: wire.ResponsesRequest, raw_input: object, turns: StoredTurns | None
) -> TakenItems:
    """Return the earlier turns and the input, with references replaced by stored items.

    `turns` is None if stored responses are not read, that is, for a key without storage and when a
    route is only explained. Raises RequestError with the field at fault.
    """
    if turns is None and params.previous_response_id is not None:
        raise _not_stored(PREVIOUS)
    known_turns = turns or StoredTurns()
    raws: list[JsonObject] = [*known_turns.earlier]
    items = [(PREVIOUS, item) for item in check_items(known_turns.earlier, PREVIOUS)]
    if isinstance(params.input, str):
        raws.append({"type": "message", "role": "user", "content": params.input})
        items.append(("input", check_items(raws[-1:], "input")[0]))
        return TakenItems(
            items=items,
            stored_form=tuple(raws),
            left_out=(),
            added_bytes=_size(known_turns.earlier),
        )
    here = {item.get("id") for item in known_turns.earlier}
    left_out: list[ItemReference] = []
    inserted: list[JsonObject] = []
    for number, item in enumerate(params.input):
        path = f"input[{number}]"
        if not isinstance(item, ItemReference):
            items.append((path, item))
            raws.append(raw_input[number] if isinstance(raw_input, list) else {})
            continue
        if item.id in here:
            continue
        stored = known_turns.referenced.get(item.id)
        if stored is not None:
            # Each item is inserted only once, because a short body could otherwise name a long item
            # many times.
            here.add(item.id)
            items.append((path, check_items([stored], path)[0]))
            raws.append(stored)
            inserted.append(stored)
        elif item.is_reasoning:
            left_out.append(item)
        elif turns is None:
            raise _not_stored(path)
        else:
            raise RequestError(
                ErrorCode.NOT_FOUND,
                f"{path}.id: no stored response in this workspace has this item.",
                param=f"{path}.id",
            )
    return TakenItems(
        items=items,
        stored_form=tuple(raws),
        left_out=left_out,
        added_bytes=_size(known_turns.earlier) + _size(inserted),
    )


def numbered(items: Sequence[JsonObject], generation_id: str) -> tuple[JsonObject, ...]:
    """Return items as OpenAI lists them: with a type, an id, and content as a list."""
    return tuple(_numbered(item, f"{generation_id}_i{index}") for index, item in enumerate(items))


def _numbered(item: JsonObject, suffix: str) -> JsonObject:
    type_ = str(item.get("type") or "message")
    id_ = item.get("id")
    if not isinstance(id_, str) or not id_:
        id_ = f"{_PREFIXES.get(type_, 'item')}_{suffix}"
    numbered_item: dict[str, JsonValue] = {**item, "type": type_, "id": id_}
    if type_ == "message" and isinstance(item.get("content"), str):
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        content: dict[str, JsonValue] = {"type": part, "text": item["content"]}
        if part == "output_text":
            content["annotations"] = []
        numbered_item["content"] = [content]
    return numbered_item


def check_items(items: Sequence[JsonObject], path: str) -> list[Item]:
    """Return validated items; raise RequestError if this version does not support them."""
    try:
        return StoredItems.model_validate(items).root
    except ValidationError as invalid:
        raise field_refusal(
            path, "refers to stored items that this version does not support"
        ) from invalid


def _not_stored(path: str) -> RequestError:
    """Return an error that fits both keys without storage and route explanations."""
    what = "needs a stored response, which keys without storage and route explanations cannot read"
    return field_refusal(path, f"{what}: {_STORE_OR_SEND}")


def _size(items: Sequence[JsonObject]) -> int:
    return sum(len(to_json(item)) for item in items)

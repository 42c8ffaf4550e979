"""Parses earlier answers in a Messages request; an answer with server tool runs is split into
rounds.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.content import Provenance, Reasoning, ServerToolId, Text, ToolCall
from tollgate.core.reasoning_details import read_detail
from tollgate.core.request import AssistantContent, AssistantMessage, Message
from tollgate.core.signers import ANTHROPIC_BLOCKS, CLAUDE
from tollgate.ingress.messages.run_blocks import OWN_ID
from tollgate.ingress.messages.wire import blocks
from tollgate.ingress.shared.media import field_refusal, parse_cache_mark
from tollgate.ingress.shared.signatures import Packed, is_packed, unpack
from tollgate.ingress.shared.tool_runs import FinishedRun, is_packed_run, unpack_run
from tollgate.ingress.shared.wire.request_model import unknown_of

_TOOLS: Final[Mapping[object, ServerToolId]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
}


class AnswerRounds:
    """The rounds of an answer; every round except the last ends with server tool runs."""

    def __init__(self, content: list[blocks.AssistantBlock]) -> None:
        self._blocks = content
        self._proofs = dict(_proofs_of_calls(content))
        self._content: list[AssistantContent] = []
        self._runs: dict[str, FinishedRun] = {}
        self._has_call = False
        self.messages: list[Message] = []

    def parse(self, path: str) -> list[Message]:
        """Return the messages; raise RequestError with the field at fault."""
        for number, block in enumerate(self._blocks):
            match block:
                case blocks.OwnBlock():
                    self._add_own(block, f"{path}[{number}]")
                case blocks.ThinkingBlock(signature=signature) if is_packed_run(signature):
                    run = unpack_run(signature)
                    if run is not None:
                        self._runs[run.id] = run
                case _:
                    self._say(_parts(block, self._proofs))
        self._end()
        return self.messages

    def _add_own(self, block: blocks.OwnBlock, path: str) -> None:
        run = _read_use(block, path)
        if run is not None:
            self._runs[run.id] = run
            return
        run_id = _run_of_result(block)
        if run_id is None:
            self._say([_own_part(block)])
            return
        if run_id not in self._runs:
            raise field_refusal(
                f"{path}.tool_use_id", "must be the id of an earlier `server_tool_use` block"
            )
        self._runs[run_id] = _with_result(self._runs[run_id], block)

    def _say(self, parts: Iterable[AssistantContent]) -> None:
        """Add content from the model; content that follows runs starts the next round."""
        for part in parts:
            is_call = isinstance(part, ToolCall)
            # Answers that call one of the caller's tools are not split, because the result must
            # directly follow the call.
            if self._runs and not (is_call or self._has_call):
                self._end()
            self._content.append(part)
            self._has_call = self._has_call or is_call

    def _end(self) -> None:
        content = (*self._content, *(run.call for run in self._runs.values()))
        if content:
            self.messages.append(AssistantMessage(content=content))
        self.messages += [run.result for run in self._runs.values()]
        self._content, self._runs, self._has_call = [], {}, False


def _parts(
    block: blocks.AssistantBlock, proofs: dict[str, Provenance]
) -> Iterator[AssistantContent]:
    match block:
        case blocks.TextBlock():
            # Anthropic's clients send empty strings back, but providers refuse them.
            if block.text:
                mark = parse_cache_mark(block.cache_control)
                yield Text(text=block.text, cache=mark, native=unknown_of(block))
        case blocks.ThinkingBlock():
            yield from _thought(block)
        case blocks.RedactedThinkingBlock():
            yield Reasoning(text="", provenance=Provenance(signer=CLAUDE, data=block.data))
        case blocks.ToolUseBlock():
            yield ToolCall(
                id=block.id,
                name=block.name,
                arguments=to_json(block.input).decode(),
                cache=parse_cache_mark(block.cache_control),
                provenance=proofs.get(block.id),
                native=unknown_of(block),
            )
        case _:
            raise TypeError(f"unexpected block type {block.type}")


def _thought(block: blocks.ThinkingBlock) -> Iterator[Reasoning]:
    if block.format is not None:
        yield read_detail({**block.model_dump(), "text": block.thinking})
        return
    packed = _read_signature(block.signature) if block.signature else None
    if packed is None:
        yield Reasoning(text=block.thinking)
    elif packed.call_id is None:
        yield Reasoning(text=block.thinking, provenance=packed.provenance)


def _proofs_of_calls(
    content: list[blocks.AssistantBlock],
) -> Iterator[tuple[str, Provenance]]:
    """Yield the ids of signed calls, each with the signer's data from a thinking block."""
    for block in content:
        if isinstance(block, blocks.ThinkingBlock) and block.signature:
            packed = _read_signature(block.signature)
            if packed is not None and packed.call_id is not None:
                yield packed.call_id, packed.provenance


def _read_signature(signature: str) -> Packed | None:
    """Return the signer's data in a signature; None if a client damaged a packed signature."""
    if is_packed(signature):
        return unpack(signature)
    return Packed(provenance=Provenance(signer=CLAUDE, signature=signature))


def _own_part(block: blocks.OwnBlock) -> Reasoning:
    """Return a block that only Claude reads; other models get the text of a compaction."""
    fields = block.model_dump()
    is_compaction = block.type == "compaction"
    text = fields.get("content") if is_compaction else None
    data = to_json(fields).decode()
    provenance = Provenance(signer=ANTHROPIC_BLOCKS, data=data, is_compaction=is_compaction)
    return Reasoning(text=text if isinstance(text, str) else "", provenance=provenance)


def _read_use(block: blocks.OwnBlock, path: str) -> FinishedRun | None:
    """Return the run that a block starts, marked as failed; None for a tool that Anthropic ran."""
    fields = block.model_extra or {}
    id_ = fields.get("id")
    if block.type != "server_tool_use" or not isinstance(id_, str) or not id_.startswith(OWN_ID):
        return None
    tool, arguments = _TOOLS.get(fields.get("name")), fields.get("input")
    if tool is None:
        raise field_refusal(f"{path}.name", "must be 'web_search' or 'web_fetch'")
    if not isinstance(arguments, dict):
        raise field_refusal(f"{path}.input", "must be an object")
    return FinishedRun(
        id=id_, tool=tool, arguments=to_json(arguments).decode(), error="unavailable"
    )


def _run_of_result(block: blocks.OwnBlock) -> str | None:
    """Return the id of the run whose result is in a block; None for a tool that Anthropic ran."""
    id_ = (block.model_extra or {}).get("tool_use_id")
    if block.type.endswith("_tool_result") and isinstance(id_, str) and id_.startswith(OWN_ID):
        return id_
    return None


def _with_result(run: FinishedRun, block: blocks.OwnBlock) -> FinishedRun:
    """Return the run with the result in a block."""
    content = (block.model_extra or {}).get("content")
    match content:
        case {"error_code": str(error)}:
            return replace(run, error=error)
        case {"content": {"source": {"data": str(text)}}}:
            return replace(run, text=text, error=None)
        case [{"encrypted_content": str(packed)}, *_] if packed_run := unpack_run(packed):
            return replace(run, text=packed_run.text, error=None)
        case list():
            return replace(run, text=_listed(content), error=None)
        case _:
            return run


def _listed(results: list[Any]) -> str:
    """Return the titles and URLs of search results, for clients that have kept nothing else of the
    results.
    """
    lines = [
        f"{entry.get('title') or ''} {entry['url']}".strip()
        for entry in results
        if isinstance(entry, dict) and isinstance(entry.get("url"), str)
    ]
    return "\n".join(lines) or "Nothing was found."

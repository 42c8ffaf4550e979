"""What a client of each format can say, one thing at a time, for the lists of docs/formats/."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.format_turns import (
    ANSWERED,
    CALLED,
    FAILED,
    IN_CHAT,
    IN_MESSAGES,
    IN_RESPONSES,
    REDACTED,
    RUNS,
    SEARCHED,
    in_details,
    in_item,
)
from tests.unit.engine.client_formats import CHAT, LEGACY, MESSAGE, RESPONSE
from tests.unit.engine.same_conversations import (
    CHAT_TOOLS,
    CLOSED,
    INPUT_TEXT,
    PROMPT,
    RESPONSES_TOOLS,
    SAME,
    TEXT,
    TOOLS,
    Json,
    item,
    user,
)
from tests.unit.ingress.media_samples import WAV, b64
from tests.upstream.gemini_chunks import SIGNATURE
from tollgate.core.content import Provenance
from tollgate.core.signers import CLAUDE, GEMINI, OPENAI
from tollgate.ingress.shared.signatures import Packed, pack


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One thing that a request says: the request, and the same without it.

    `words` is JSON that stands in the provider's request as it came, where nothing is translated.
    """

    name: str
    body: Json
    without: Json
    words: Any
    headers: Mapping[str, str] = field(default_factory=dict)


PLAIN: Mapping[str, Json] = {
    CHAT.name: user(TEXT),
    LEGACY.name: PROMPT,
    MESSAGE.name: user(TEXT),
    RESPONSE.name: item(INPUT_TEXT),
}
_OTHER: Mapping[str, Json] = {
    CHAT.name: user({"type": "text", "text": "?"}),
    LEGACY.name: {"prompt": "?"},
    MESSAGE.name: user({"type": "text", "text": "?"}),
    RESPONSE.name: item({"type": "input_text", "text": "?"}),
}
_TOOLS: Mapping[str, Json] = {
    CHAT.name: {"tools": CHAT_TOOLS},
    MESSAGE.name: {"tools": TOOLS},
    RESPONSE.name: {"tools": RESPONSES_TOOLS},
}
PICTURE = "https://example.org/a.png"
_MARK = {"type": "ephemeral", "ttl": "1h"}


def _same(name: str, case: str, without: Mapping[str, Json]) -> dict[str, Feature]:
    """Return by format what a conversation of the matrix says more than another one."""
    made = {}
    for format_, body in SAME[case].items():
        less = without[format_]
        words = {key: value for key, value in body.items() if less.get(key) != value}
        made[format_] = Feature(name=name, body=body, without=less, words=_words(words))
    return made


def _words(fields: Json) -> Any:
    """Return the fields, or one of their messages: of the operator, or the last."""
    if "system" in fields:
        return {"system": fields["system"]}
    for listed in ("messages", "input"):
        if isinstance(fields.get(listed), list):
            first, last = fields[listed][0], fields[listed][-1]
            return first if first.get("role") == "system" else last
    return fields


_ASKED_TOOLS = {
    name: PLAIN[name]
    | tools
    | {"tool_choice": {"type": "auto"} if name == MESSAGE.name else "auto"}
    for name, tools in _TOOLS.items()
}
SHARED = (
    {
        name: Feature(name="text", body=body, without=_OTHER[name], words=_words(body))
        for name, body in PLAIN.items()
    },
    _same("earlier turns", "turns", _OTHER),
    _same("system prompt", "system", _OTHER),
    _same("tools, one required", "tools", PLAIN),
    _same("one tool by name", "named tool", _ASKED_TOOLS),
    _same("one call at most", "one call", _ASKED_TOOLS),
    _same("calls and results", "parallel tools", _OTHER),
    _same("image in a tool result", "image of a tool", _OTHER),
    _same("image as data", "image", PLAIN),
    _same("PDF as data", "file", PLAIN),
    _same("JSON schema", "JSON schema", PLAIN),
    _same("reasoning by effort", "effort", PLAIN),
    _same("reasoning by tokens", "budget", PLAIN),
    _same("end user", "end user", PLAIN),
)


def _set(format_: str, name: str, **fields: Any) -> Feature:
    """Return a feature of further fields of a request."""
    plain = PLAIN[format_]
    return Feature(name=name, body=plain | fields, without=plain, words=fields)


def _stated(format_: str, **fields: Any) -> list[Feature]:
    """Return a feature for each field of a request, under its name."""
    return [_set(format_, f"`{name}`", **{name: value}) for name, value in fields.items()]


def _said(
    format_: str, name: str, entry: Json, less: Json | None = None, words: Any = None
) -> Feature:
    """Return a feature of one more message or item, `less` in its place without it."""
    plain = PLAIN[format_]
    listed = "input" if "input" in plain else "messages"
    asked = plain[listed]
    return Feature(
        name=name,
        body=plain | {listed: [*asked, entry, *asked]},
        without=plain | {listed: [*asked, *([less] if less else []), *asked]},
        words=words or entry,
    )


def _shown(format_: str, name: str, block: Json, less: Json | None = None) -> Feature:
    """Return a feature of a part or block of the user's message, `less` in its place without it."""
    make = item if format_ == RESPONSE.name else user
    text = INPUT_TEXT if format_ == RESPONSE.name else TEXT
    without = PLAIN[format_] if less is None else make(less, text)
    return Feature(name=name, body=make(block, text), without=without, words=block)


def _in_thinking(provenance: Provenance) -> Json:
    is_claudes = provenance.signer == CLAUDE
    signature = provenance.signature if is_claudes else pack(Packed(provenance=provenance))
    block = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    return {"role": "assistant", "content": [block, {"type": "text", "text": "So."}]}


OF_CLAUDE = Provenance(signer=CLAUDE, signature="c2ln")
OF_OPENAI = Provenance(signer=OPENAI, id="rs_1", data="gAAA")
OF_GEMINI = Provenance(signer=GEMINI, signature=SIGNATURE)
_URL_IMAGE = {"type": "image_url", "image_url": {"url": PICTURE}}
_CUSTOM_OF_CHAT = {"type": "custom", "custom": {"name": "patch"}}
_CHAT = [
    Feature(
        name="free-text tools",
        body=PLAIN[CHAT.name] | {"tools": [*CHAT_TOOLS, _CUSTOM_OF_CHAT]},
        without=PLAIN[CHAT.name] | {"tools": CHAT_TOOLS},
        words=_CUSTOM_OF_CHAT,
    ),
    _shown(CHAT.name, "image by URL", _URL_IMAGE),
    _shown(
        CHAT.name,
        "audio",
        {"type": "input_audio", "input_audio": {"data": b64(WAV), "format": "wav"}},
    ),
    _shown(
        CHAT.name,
        "`cache_control`",
        {"type": "text", "text": "So.", "cache_control": _MARK},
        {"type": "text", "text": "So."},
    ),
    _said(CHAT.name, "role `developer`", {"role": "developer", "content": "Be brief."}),
    _said(CHAT.name, "Claude's reasoning", in_details(CLAUDE, "c2ln"), ANSWERED),
    _said(CHAT.name, "Gemini's reasoning", in_details(GEMINI, SIGNATURE), ANSWERED),
    _said(CHAT.name, "OpenAI's reasoning", in_details(OPENAI, "gAAA"), ANSWERED),
    _said(CHAT.name, "unsigned `reasoning`", ANSWERED | {"reasoning": "Hm."}, ANSWERED),
    _said(CHAT.name, RUNS, IN_CHAT, ANSWERED),
    _set(CHAT.name, "JSON object", response_format={"type": "json_object"}),
    *_stated(
        CHAT.name,
        temperature=0.3,
        top_k=7,
        min_p=0.1,
        stop=["END"],
        seed=7,
        presence_penalty=0.5,
        logit_bias={"7": 1.0},
        logprobs=True,
        n=2,
        prompt_cache_key="k",
        service_tier="priority",
        guided_choice=["yes", "no"],
        guided_regex="[a-z]+",
    ),
]
_COMPLETIONS = [
    Feature(
        name="several prompts",
        body={"prompt": ["Once", "Twice"]},
        without={"prompt": "Once"},
        words={"prompt": ["Once", "Twice"]},
    ),
    *_stated(
        LEGACY.name,
        suffix="The end.",
        echo=True,
        n=2,
        logprobs=2,
        temperature=0.3,
        stop=["END"],
        seed=7,
        presence_penalty=0.5,
        logit_bias={"7": 1.0},
    ),
]


def _beta(name: str, fields: Json) -> Feature:
    plain = PLAIN[MESSAGE.name]
    headers = {"anthropic-beta": name}
    return Feature(
        name=f"`{next(iter(fields))}` and its beta",
        body=plain | fields,
        without=plain,
        words=fields,
        headers=headers,
    )


def _tool(name: str, /, **fields: Any) -> Feature:
    plain = PLAIN[MESSAGE.name]
    bare = {"name": "weather", "input_schema": CLOSED}
    tool = fields if "type" in fields else bare | fields
    without = plain if tool is fields else plain | {"tools": [bare]}
    return Feature(name=name, body=plain | {"tools": [tool]}, without=without, words=tool)


def _result(result: Json) -> Json:
    calls = [{"role": "user", "content": "?"}, {"role": "assistant", "content": [CALLED]}]
    asked: Json = {"messages": [*calls, {"role": "user", "content": [result]}]}
    return asked | {"tools": [{"name": "weather", "input_schema": {"type": "object"}}]}


_MESSAGES = [
    _shown(
        MESSAGE.name, "image by URL", {"type": "image", "source": {"type": "url", "url": PICTURE}}
    ),
    _shown(
        MESSAGE.name,
        "text document",
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "Words."},
        },
    ),
    _shown(
        MESSAGE.name,
        "`search_result`",
        {"type": "search_result", "source": "s", "title": "t", "content": [TEXT]},
    ),
    _shown(
        MESSAGE.name,
        "`cache_control`",
        {"type": "text", "text": "So.", "cache_control": _MARK},
        {"type": "text", "text": "So."},
    ),
    Feature(
        name="`is_error` of a tool result",
        body=_result(FAILED),
        without=_result({**FAILED, "is_error": False}),
        words=FAILED,
    ),
    _said(
        MESSAGE.name, "role `system` between messages", {"role": "system", "content": "Be brief."}
    ),
    _said(
        MESSAGE.name,
        "Claude's thinking",
        claude := _in_thinking(OF_CLAUDE),
        ANSWERED,
        claude["content"][0],
    ),
    _said(
        MESSAGE.name,
        "`redacted_thinking`",
        {"role": "assistant", "content": [REDACTED, TEXT]},
        {"role": "assistant", "content": [TEXT]},
        REDACTED,
    ),
    _said(MESSAGE.name, "Gemini's thinking", _in_thinking(OF_GEMINI), ANSWERED),
    _said(MESSAGE.name, "OpenAI's thinking", _in_thinking(OF_OPENAI), ANSWERED),
    _said(
        MESSAGE.name,
        "blocks of Anthropic's tools",
        {"role": "assistant", "content": [SEARCHED, TEXT]},
        {"role": "assistant", "content": [TEXT]},
        SEARCHED,
    ),
    _said(MESSAGE.name, RUNS, IN_MESSAGES, {"role": "assistant", "content": [TEXT]}),
    _tool("tools such as `bash_20250124`", type="bash_20250124", name="bash"),
    _tool("`strict` tools", strict=True),
    _tool("`defer_loading` of a tool", defer_loading=True),
    _set(MESSAGE.name, "`thinking: adaptive`", thinking={"type": "adaptive"}),
    *_stated(
        MESSAGE.name,
        temperature=0.3,
        top_k=7,
        stop_sequences=["END"],
        service_tier="standard_only",
    ),
    _beta("context-management-2025-06-27", {"context_management": {"edits": []}}),
]
_CUSTOM = {"type": "custom", "name": "patch"}
_NESTED = {
    "type": "namespace",
    "name": "os",
    "description": "The machine.",
    "tools": [{"type": "function", "name": "shell", "parameters": {"type": "object"}}],
}
_RESPONSES = [
    _shown(RESPONSE.name, "image by URL", {"type": "input_image", "image_url": PICTURE}),
    _said(RESPONSE.name, "role `developer`", {"role": "developer", "content": "Be brief."}),
    _said(RESPONSE.name, "OpenAI's reasoning", in_item("gAAA")),
    _said(
        RESPONSE.name,
        "Claude's reasoning",
        in_item(pack(Packed(provenance=OF_CLAUDE))),
    ),
    _said(
        RESPONSE.name,
        "Gemini's reasoning",
        in_item(pack(Packed(provenance=OF_GEMINI))),
    ),
    _said(RESPONSE.name, "`item_reference` to reasoning", {"type": "item_reference", "id": "rs_1"}),
    _said(RESPONSE.name, RUNS, IN_RESPONSES),
    _said(
        RESPONSE.name,
        "hosted tool calls",
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ),
    *(
        Feature(
            name=name,
            body=PLAIN[RESPONSE.name] | {"tools": [*RESPONSES_TOOLS, tool]},
            without=PLAIN[RESPONSE.name] | {"tools": RESPONSES_TOOLS},
            words=tool,
        )
        for name, tool in (
            ("free-text tools", _CUSTOM),
            ("tools in a `namespace`", _NESTED),
            ("hosted tools such as `tool_search`", {"type": "tool_search"}),
        )
    ),
    *_stated(
        RESPONSE.name,
        instructions="Be brief.",
        top_logprobs=2,
        temperature=0.3,
        prompt_cache_key="k",
        service_tier="priority",
        truncation="auto",
        store=True,
    ),
    _set(RESPONSE.name, "JSON object", text={"format": {"type": "json_object"}}),
    _set(RESPONSE.name, "`text.verbosity`", text={"verbosity": "low"}),
    Feature(
        name="`reasoning.summary: detailed`",
        body=PLAIN[RESPONSE.name] | {"reasoning": {"effort": "low", "summary": "detailed"}},
        without=PLAIN[RESPONSE.name] | {"reasoning": {"effort": "low"}},
        words={"summary": "detailed"},
    ),
]
OWN = {
    CHAT.name: _CHAT,
    LEGACY.name: _COMPLETIONS,
    MESSAGE.name: _MESSAGES,
    RESPONSE.name: _RESPONSES,
}


def features_of(format_: str) -> list[Feature]:
    """Return the features of a client format, in the order of its table."""
    return [*(made[format_] for made in SHARED if format_ in made), *OWN[format_]]

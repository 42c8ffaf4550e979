"""The lists of docs/providers.md: what each format and provider can do, by trying its codec.

`python -m tests.support_table` writes them. Nothing in them is stated: an outcome is what a codec
made of a request that wants the one thing, or of frames that answer with it.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, get_args

from msgspec.structs import replace

from tests.outcome_list import departure_list, outcome_list
from tests.unit.providers.request_options import (
    HI,
    OPTIONS,
    PLAIN,
    TEXT_OPTIONS,
    as_one_text,
    shown,
)
from tests.unit.providers.requests import PDF, PNG, SCHEMA, WAV
from tests.unit.providers.shared_cases import ANSWERS, cases_of, expected_parts, parts_of, read
from tests.upstream.wires import EVERY_WIRE, Wire
from tollgate.core.content import Audio, Document, Image, MediaUrl, ToolCall
from tollgate.core.errors import GatewayError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    JsonOutput,
    SchemaOutput,
    ToolMessage,
)
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.base import Codec, Guardrail, Target
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.offers import Chains

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "providers.md"
BEGIN: Final = "<!-- made by python -m tests.support_table -->"
END: Final = "<!-- end -->"

YES, NO, LEFT_OUT = "yes", "no", "named"
Probe = Callable[[Codec, Target], str]

PICTURE = "https://example.org/a.png"
LOOKED = AssistantMessage(content=(ToolCall(id="call_1", name="weather", arguments="{}"),))
SEEN = ToolMessage(call_id="call_1", content=(Image(source=PNG),))
STRICT = SchemaOutput(name="city", schema=SCHEMA | {"additionalProperties": False}, strict=True)


def page(written: str) -> str:
    """Return the page with its lists made anew."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{_formats()}\n\n{_providers()}\n\n{END}{after}"


def _converses(codec: Codec, target: Target) -> bool:
    """Return whether a codec takes a conversation with tools, and not just one text."""
    try:
        codec.encode(PLAIN, target)
    except GatewayError:
        return False
    return True


def _carried(request: GenerationRequest, mark: str) -> Probe:
    """Make a probe of whether the body holds the content that the request shows."""

    def probe(codec: Codec, target: Target) -> str:
        try:
            return YES if mark in repr(codec.encode(request, target).body) else NO
        except GatewayError:
            return NO

    return probe


def _formed(request: GenerationRequest) -> Probe:
    """Make a probe of whether the provider enforces the form, or the gateway emulates it."""

    def probe(codec: Codec, target: Target) -> str:
        try:
            return "emulated" if codec.encode(request, target).wrapping.tool else "native"
        except GatewayError:
            return NO

    return probe


def _granted(name: str) -> Probe:
    """Make a probe of whether every option of this name goes out, or is named as left out."""

    def probe(codec: Codec, target: Target) -> str:
        known = OPTIONS if _converses(codec, target) else TEXT_OPTIONS
        options = [option for option in known if option.name == name]
        if not options:
            return NO
        try:
            sent = [codec.encode(option.request, target) for option in options]
        except GatewayError:
            return NO
        without = [codec.encode(option.without, target).body for option in options]
        if [each.body for each in sent] == without and not any(each.adapted for each in sent):
            return "not sent"
        left_out = [name in each.adapted for each in sent]
        return LEFT_OUT if all(left_out) else "in part" if any(left_out) else YES

    return probe


def _guided(field: str, value: object) -> Probe:
    def probe(codec: Codec, target: Target) -> str:
        plain = PLAIN if _converses(codec, target) else as_one_text(PLAIN)
        request = replace(plain, tools=(), guided={field: value})
        try:
            sent = codec.encode(request, target)
        except GatewayError:
            return "refused"
        return YES if field in sent.body else "emulated"

    return probe


def _choices(codec: Codec, target: Target) -> str:
    is_native = codec.demultiplexer is not None and target.dialect.native_choices
    return "native" if is_native else "fanned out"


def _guarded(codec: Codec, target: Target) -> str:
    guarded = replace(target, guardrail=Guardrail(id="g-1", version="1"))
    return _carried(PLAIN, "g-1")(codec, guarded)


IMAGE: Final = _carried(shown(HI, Image(source=PNG)), PNG.base64)
AUDIO: Final = _carried(shown(HI, Audio(source=WAV, format="wav")), WAV.base64)
PDF_FILE: Final = _carried(shown(HI, Document(source=PDF)), PDF.base64)
JSON_SCHEMA: Final = _formed(replace(PLAIN, tools=(), output_format=STRICT))
REQUESTS: Final[Mapping[str, Probe]] = {
    "image as data": IMAGE,
    "image by URL, fetched by the provider": _carried(
        shown(HI, Image(source=MediaUrl(url=PICTURE))), PICTURE
    ),
    "image in a tool result": _carried(
        replace(PLAIN, messages=(*PLAIN.messages, LOOKED, SEEN)), PNG.base64
    ),
    "audio": AUDIO,
    "PDF as data": PDF_FILE,
    "JSON schema": JSON_SCHEMA,
    "JSON schema next to tools": _formed(replace(PLAIN, output_format=STRICT)),
    "JSON object": _formed(replace(PLAIN, tools=(), output_format=JsonOutput())),
    "`suffix`": _carried(replace(as_one_text(PLAIN), suffix="The end."), "The end."),
    "`guided_choice`": _guided("guided_choice", ["yes", "no"]),
    "`guided_regex`": _guided("guided_regex", "[a-z]+"),
    "`n`": _choices,
    "the operator's guardrail": _guarded,
    **{f"`{name}`": _granted(name) for name in dict.fromkeys(option.name for option in OPTIONS)},
}
OF_A_PROVIDER: Final[Mapping[str, Probe]] = {
    "image": IMAGE,
    "audio": AUDIO,
    "PDF": PDF_FILE,
    "JSON schema": JSON_SCHEMA,
    "reasoning": _granted("reasoning"),
    "`cache_control`": _granted("cache_control"),
    "`n`": _choices,
    "`temperature`": _granted("temperature"),
    "`seed`": _granted("seed"),
    "`logprobs`": _granted("logprobs"),
}


def _formats() -> str:
    columns = {
        wire.name: [
            *(_understood(wire, case) for case in ANSWERS),
            *(probe(wire.codec, wire.target) for probe in REQUESTS.values()),
        ]
        for wire in EVERY_WIRE
    }
    return outcome_list([*(f"answers: {case}" for case in ANSWERS), *REQUESTS], columns)


def _understood(wire: Wire, case: str) -> str:
    """Return whether a stream of this case, its bytes one by one, is read correctly."""
    if case not in cases_of(wire):
        return "-"
    body = wire.body(wire.write(ANSWERS[case]))
    response = read(wire, [bytes([byte]) for byte in body])
    return YES if [*parts_of(response)] == [*expected_parts(ANSWERS[case])] else NO


def _providers() -> str:
    catalog = Catalog.from_json(compile_catalog(ROOT / "routing.yaml").content)
    chains = Chains(catalog)
    targets = [
        offer.attempt.target
        for slug in catalog.models
        if (chain := chains.get(slug)) is not None
        for offer in chain.offers[slug]
    ]
    served: dict[str, list[str]] = {}
    chatting: dict[str, list[str]] = {}
    for slug, row in sorted(catalog.providers.items()):
        by_kind: dict[str, list[Target]] = {kind: [] for kind in get_args(WorkKind)}
        for target in targets:
            if target.provider == slug:
                by_kind[catalog.models[target.model].kind].append(target)
        counts = ", ".join(f"{len(found)} {kind}" for kind, found in by_kind.items() if found)
        served.setdefault(f"{row.codec}, {row.transport}", []).append(f"`{slug}` {counts}")
        codec, own = WIRE_FORMATS[row.codec].make_codec(), by_kind["chat"]
        if codec and own:
            chatting[slug] = [
                _of_all(_taken(name, codec, target) for target in own) for name in OF_A_PROVIDER
            ]
    lines = [f"- **{spoken}**: {'; '.join(rows)}." for spoken, rows in served.items()]
    return "\n".join(lines) + "\n\n" + departure_list([*OF_A_PROVIDER], chatting)


def _taken(name: str, codec: Codec, target: Target) -> str:
    """Return the cell of one endpoint, for a request that the planner lets through to it."""
    kind = {"image": "image", "audio": "audio", "PDF": "pdf"}.get(name)
    if kind is not None and kind not in target.input:
        return NO
    return OF_A_PROVIDER[name](codec, target)


def _of_all(cells: Iterable[str]) -> str:
    return " / ".join(sorted({*cells})) or "-"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

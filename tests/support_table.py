"""The lists of docs/providers.md: what the endpoints of each provider can do, by trying codecs.

`python -m tests.support_table` writes them. Nothing in them is stated: an outcome is what a codec
made of a request that wants the one thing.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, get_args

from msgspec.structs import replace

from tests.outcome_list import departure_list
from tests.unit.providers.request_options import HI, OPTIONS, PLAIN, shown
from tests.unit.providers.requests import PDF, PNG, SCHEMA, WAV
from tollgate.core.content import Audio, Document, Image
from tollgate.core.errors import GatewayError
from tollgate.core.request import GenerationRequest, SchemaOutput
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.base import Codec, Target
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

STRICT = SchemaOutput(name="city", schema=SCHEMA | {"additionalProperties": False}, strict=True)


def page(written: str) -> str:
    """Return the page with its lists made anew."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{_providers()}\n\n{END}{after}"


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
        options = [option for option in OPTIONS if option.name == name]
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


def _choices(codec: Codec, target: Target) -> str:
    is_native = codec.demultiplexer is not None and target.dialect.native_choices
    return "native" if is_native else "fanned out"


OF_A_PROVIDER: Final[Mapping[str, Probe]] = {
    "image": _carried(shown(HI, Image(source=PNG)), PNG.base64),
    "audio": _carried(shown(HI, Audio(source=WAV, format="wav")), WAV.base64),
    "PDF": _carried(shown(HI, Document(source=PDF)), PDF.base64),
    "JSON schema": _formed(replace(PLAIN, tools=(), output_format=STRICT)),
    "reasoning": _granted("reasoning"),
    "`cache_control`": _granted("cache_control"),
    "`n`": _choices,
    "`temperature`": _granted("temperature"),
    "`seed`": _granted("seed"),
    "`logprobs`": _granted("logprobs"),
}


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

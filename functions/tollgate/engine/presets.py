"""Completes a parsed request with its preset, imported at the first request that names one."""

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.compaction import Compacted
from tollgate.core.request import GenerationRequest
from tollgate.ingress.base import ParsedCall, RecordPacker, RecordWindow
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.presets import complete_request


def apply_preset(catalog: Catalog, parsed: ParsedCall) -> ParsedCall:
    """Return a call with the fields of its preset; the caller's fields that it replaces are
    reported.

    Raises RequestError for an unknown preset, and for variables that do not fit it.
    """
    completed = complete_request(catalog, parsed.request)
    if parsed.compacts is not None:
        # A conversation's record is written with the gateway's own instructions and limits, so the
        # preset does not apply.
        return parsed
    window = parsed.window
    preset_window: RecordWindow | None = window and _PresetWindow(catalog, window)
    return replace(
        parsed,
        request=completed.request,
        ignored=(*parsed.ignored, *completed.replaced),
        window=preset_window,
    )


class _PresetWindow(Struct, frozen=True):
    """A window to which the preset is applied when the answer is requested, after the
    compaction.
    """

    catalog: Catalog
    window: RecordWindow

    @property
    def tokens_max(self) -> int:
        return self.window.tokens_max

    @property
    def pauses(self) -> bool:
        return self.window.pauses

    @property
    def left_to(self) -> str | None:
        return self.window.left_to

    @property
    def packer(self) -> RecordPacker:
        return self.window.packer

    def ask(self) -> GenerationRequest:
        return self.window.ask()

    def resume(self, compacted: Compacted) -> GenerationRequest:
        return complete_request(self.catalog, self.window.resume(compacted)).request

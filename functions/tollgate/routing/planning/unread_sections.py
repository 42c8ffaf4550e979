"""Parts of a compiled catalog that few requests need, parsed at first use."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Raw
from typing_extensions import override

from tollgate.core.dotted_names import DottedName
from tollgate.providers.ports.base import ProviderRow
from tollgate.routing.schema import ModelSection

if TYPE_CHECKING:
    from tollgate.routing.guardrail_sections import GuardSection
    from tollgate.routing.planning.named_models import Named, NamedModels
    from tollgate.routing.plugin_sections import PdfSection
    from tollgate.routing.preset_sections import PresetSection
    from tollgate.routing.tool_sections import ServerToolsSection


# JSON of an empty section.
NO_SECTION: Final = b"{}"
_NAMED_MODELS: Final = DottedName["type[NamedModels]"](
    "tollgate.routing.planning.named_models:NamedModels"
)

_READ_GUARDS: Final = DottedName[Callable[[bytes], "Mapping[str, GuardSection]"]](
    "tollgate.routing.guardrail_sections:read_guards"
)
_READ_PRESETS: Final = DottedName[Callable[[bytes], "Mapping[str, PresetSection]"]](
    "tollgate.routing.preset_sections:read_presets"
)


class UnreadModels(Mapping[str, ModelSection]):
    """Models by slug, kept as JSON; each is parsed at first use."""

    def __init__(self, unread: Mapping[str, Raw]) -> None:
        self.unread = unread
        self._read: dict[str, ModelSection] = {}

    @override
    def __getitem__(self, slug: str) -> ModelSection:
        model = self._read.get(slug)
        if model is None:
            content = bytes(self.unread[slug])
            model = self._read[slug] = ModelSection.model_validate_json(content, strict=True)
        return model

    @override
    def __contains__(self, slug: object) -> bool:
        return slug in self.unread

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.unread)

    @override
    def __len__(self) -> int:
        return len(self.unread)


class UnreadNames:
    """Further names of models, indexed when a request first uses such a name."""

    def __init__(self, models: UnreadModels, providers: Mapping[str, ProviderRow]) -> None:
        self._models = models
        self._providers = providers

    def find(self, name: str) -> "Named":
        """Return the model, or the candidates, that a name stands for."""
        return self._index.find(name)

    @cached_property
    def _index(self) -> "NamedModels":
        return _NAMED_MODELS()(self._models.unread, self._providers)


class UnreadPlugins:
    """The section `plugins`, kept as JSON until the first request with a document."""

    def __init__(self, unread: bytes) -> None:
        self._unread = unread

    @cached_property
    def pdf(self) -> "PdfSection | None":
        """Settings for documents, or None; raises ValueError if their version is not supported."""
        if self._unread == NO_SECTION:
            return None
        # Imported with the first request that contains a document.
        from tollgate.routing.plugin_sections import PluginsSection

        return PluginsSection.model_validate_json(self._unread, strict=True).pdf


class UnreadTools:
    """The section `server_tools`, kept as JSON because most processes never read it."""

    def __init__(self, unread: bytes) -> None:
        self._unread = unread

    @cached_property
    def section(self) -> "ServerToolsSection":
        """Parsed section; raises ValueError if its version is not supported."""
        # Imported with the first request that uses a server tool.
        from tollgate.routing.tool_sections import ServerToolsSection

        return ServerToolsSection.model_validate_json(self._unread, strict=True)


class UnreadGuardrails:
    """Section `guardrails`, held as JSON because most catalogs have none."""

    def __init__(self, unread: bytes = NO_SECTION) -> None:
        self._unread = unread

    def __bool__(self) -> bool:
        return self._unread != NO_SECTION

    @cached_property
    def rows(self) -> "Mapping[str, GuardSection]":
        """Parsed guardrails by name; raises ValueError if their version is not supported."""
        if not self:
            return {}
        return _READ_GUARDS()(self._unread)


class UnreadPresets:
    """Section `presets`, held as JSON because most catalogs have none."""

    def __init__(self, unread: bytes = NO_SECTION) -> None:
        self._unread = unread

    def __bool__(self) -> bool:
        return self._unread != NO_SECTION

    @cached_property
    def rows(self) -> "Mapping[str, PresetSection]":
        """Parsed presets by slug; raises ValueError if their version is not supported."""
        if not self:
            return {}
        return _READ_PRESETS()(self._unread)

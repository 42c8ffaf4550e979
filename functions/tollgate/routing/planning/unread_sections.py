"""Parts of a compiled catalog that few requests need, each read at its first use."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Raw
from typing_extensions import override

from tollgate.routing.schema import ModelSection

if TYPE_CHECKING:
    from tollgate.routing.plugin_sections import PdfSection
    from tollgate.routing.tool_sections import ServerToolsSection


# A section without anything in it.
NO_SECTION: Final = b"{}"


class UnreadModels(Mapping[str, ModelSection]):
    """Models by slug as JSON that is known to be valid; a request reads the few that it may use."""

    def __init__(self, unread: Mapping[str, Raw]) -> None:
        self._unread = unread
        self._read: dict[str, ModelSection] = {}

    @override
    def __getitem__(self, slug: str) -> ModelSection:
        model = self._read.get(slug)
        if model is None:
            content = bytes(self._unread[slug])
            model = self._read[slug] = ModelSection.model_validate_json(content, strict=True)
        return model

    @override
    def __contains__(self, slug: object) -> bool:
        return slug in self._unread

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._unread)

    @override
    def __len__(self) -> int:
        return len(self._unread)


class UnreadPlugins:
    """The section `plugins` as JSON, which is read with the first document."""

    def __init__(self, unread: bytes) -> None:
        self._unread = unread

    @cached_property
    def pdf(self) -> "PdfSection | None":
        """The part on documents, None without one; ValueError if it is not of this version."""
        if self._unread == NO_SECTION:
            return None
        # Imported with the first request that has a document.
        from tollgate.routing.plugin_sections import PluginsSection

        return PluginsSection.model_validate_json(self._unread, strict=True).pdf


class UnreadTools:
    """The section `server_tools` as JSON, which most processes never read."""

    def __init__(self, unread: bytes) -> None:
        self._unread = unread

    @cached_property
    def section(self) -> "ServerToolsSection":
        """The section; ValueError if it is not of this version."""
        # Imported with the first request that has such a tool.
        from tollgate.routing.tool_sections import ServerToolsSection

        return ServerToolsSection.model_validate_json(self._unread, strict=True)

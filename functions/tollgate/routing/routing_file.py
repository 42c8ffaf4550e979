"""Complete routing.yaml as the command line reads it; functions read its compiled form."""

from pydantic import Field

from tollgate.routing.plugin_sections import OcrSection, PluginsSection
from tollgate.routing.scalars import FileGlob, Strict
from tollgate.routing.schema import MainFile
from tollgate.routing.tool_sections import ServerToolsSection


class DevSection(Strict):
    """Files for `tollgate dev` and `tollgate check`, which production leaves out."""

    include: tuple[FileGlob, ...] = Field(
        default=(), description="Globs of files, relative to this file and in the same repository."
    )


class Routing(MainFile):
    """Complete file, or its compiled form, in which all defaults are written out."""

    plugins: PluginsSection | None = Field(
        default=None, description="Processing of requests before a model gets them."
    )
    server_tools: ServerToolsSection = Field(
        default_factory=ServerToolsSection,
        description="Tools that the gateway runs within a request that offers them.",
    )

    @property
    def ocr(self) -> OcrSection | None:
        """Recognition of scanned pages; None if it is not configured."""
        pdf = self.plugins.pdf if self.plugins else None
        return pdf.ocr if pdf else None


class RoutingFile(Routing):
    """Models that a gateway serves, with their providers, prices and limits."""

    include: tuple[FileGlob, ...] = Field(
        default=(),
        description="Globs of files with further sections `providers` to `key_tiers`, relative "
        "to this file.",
    )
    dev: DevSection = Field(default_factory=DevSection)

"""The whole of routing.yaml, as the command line reads it; functions read its compiled form."""

from pydantic import Field

from tollgate.routing.plugin_sections import OcrSection, PluginsSection
from tollgate.routing.scalars import FileGlob, Strict
from tollgate.routing.schema import MainFile
from tollgate.routing.tool_sections import ServerToolsSection


class DevSection(Strict):
    """Files that `tollgate dev` and `tollgate check` read and production leaves out."""

    include: tuple[FileGlob, ...] = Field(
        default=(), description="Globs of files beside this one, in the same repository."
    )


class Routing(MainFile):
    """The whole file, or its compiled form, in which everything is written out."""

    plugins: PluginsSection | None = Field(
        default=None, description="Work on requests before a model sees them."
    )
    server_tools: ServerToolsSection = Field(
        default_factory=ServerToolsSection,
        description="Tools that the gateway runs within a request that asks for them.",
    )

    @property
    def ocr(self) -> OcrSection | None:
        """The recognition of scanned pages, None without it."""
        pdf = self.plugins.pdf if self.plugins else None
        return pdf.ocr if pdf else None


class RoutingFile(Routing):
    """routing.yaml: the models, their providers, prices and limits that a gateway serves."""

    include: tuple[FileGlob, ...] = Field(
        default=(),
        description="Globs of files beside this one, with more of `providers` to `key_tiers`.",
    )
    dev: DevSection = Field(default_factory=DevSection)

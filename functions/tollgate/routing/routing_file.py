"""Schema of the complete routing.yaml, which only the command line reads.

`python -m tollgate.routing.routing_file > infra/schema/routing.v1.json` writes the JSON Schema that
editors use to check and complete the file.
"""

import ast
import json
import sys
from inspect import getsource
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, cast

from pydantic import BaseModel, Field, StringConstraints
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import ModelSchema
from typing_extensions import override

from tollgate.routing.guardrail_sections import Guards
from tollgate.routing.plugin_sections import OcrSection, PluginsSection
from tollgate.routing.preset_sections import Presets
from tollgate.routing.scalars import Day, FileGlob, Strict
from tollgate.routing.schema import MainFile
from tollgate.routing.tool_sections import ServerToolsSection


class DevSection(Strict):
    """Files for `tollgate dev` and `tollgate check`, which production does not use."""

    include: tuple[FileGlob, ...] = ()
    """Globs of files, relative to this file and in the same repository, or `tollgate:simulator`."""


class Routing(MainFile):
    """Complete file, or its compiled form with all defaults."""

    plugins: PluginsSection | None = None
    """Plugins, which change requests before these are sent to a model."""
    server_tools: ServerToolsSection = Field(default_factory=ServerToolsSection)
    """Tools that the gateway runs for requests that offer these tools."""
    guardrails: Guards = Field(default={})
    """Guardrails of the gateway by a slug of your choice, which judge conversations with any
    provider."""
    presets: Presets = Field(default={})
    """Presets by a slug of your choice, which callers request as `preset/` and the slug."""

    @property
    def ocr(self) -> OcrSection | None:
        """OCR of scanned pages; None if OCR is not configured."""
        pdf = self.plugins.pdf if self.plugins else None
        return pdf.ocr if pdf else None


class CatalogSection(Strict):
    """Release of the catalog in `catalog.yaml`, next to this file."""

    release: Day
    """Day of the release."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of `catalog.yaml`."""


class RoutingFile(Routing):
    """Models that a gateway serves, with their providers, prices and limits."""

    include: tuple[FileGlob, ...] = ()
    """Globs of files, relative to this file, with more entries for all sections from `providers` to
    `key_tiers`; or `tollgate:` and a provider of `catalog.yaml`, to take it with its models.
    """
    catalog: CatalogSection | None = None
    dev: DevSection = Field(default_factory=DevSection)


class _SchemaWriter(GenerateJsonSchema):
    """Generator that takes descriptions from the docstrings after fields, and writes no titles.

    Editors would show the title "Keep Alive S" instead of `keep_alive_s`.
    """

    @override
    def field_title_should_be_set(self, schema: CoreSchema) -> bool:
        return False

    @override
    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        written = super().model_schema(schema)
        section: type[BaseModel] = schema["cls"]
        for name, text in _field_docstrings(section).items():
            key = section.model_fields[name].alias or name
            written["properties"][key].setdefault("description", text)
        return written


def _field_docstrings(section: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings after the fields of a section and of its base classes."""
    texts: dict[str, str] = {}
    for base in reversed(section.__mro__[: section.__mro__.index(BaseModel)]):
        body = cast("ast.ClassDef", ast.parse(dedent(getsource(base))).body[0]).body
        for field, following in pairwise(body):
            match field, following:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.split())
                case _:
                    pass
    return texts


def _let_rows_be_partial(schema: JsonSchemaValue) -> None:
    """Make all keys of a provider or model optional, since the catalog may have them, and accept
    null.
    """
    for section, row in (("providers", "ProviderSection"), ("models", "ModelSection")):
        del schema["$defs"][row]["required"]
        rows = schema["properties"][section]["patternProperties"]
        for pattern, reference in rows.items():
            rows[pattern] = {"anyOf": [reference, {"type": "null"}]}


def json_schema_text(file: type[BaseModel] = RoutingFile) -> str:
    """Return a file's JSON Schema, which does not check references between sections."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **file.model_json_schema(by_alias=True, schema_generator=_SchemaWriter),
    }
    if file is RoutingFile:
        _let_rows_be_partial(schema)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(json_schema_text())

"""JSON Schema with which editors check and complete routing.yaml.

`python -m tollgate.routing.file.json_schema > infra/schema/routing.v1.json` rewrites the file.
"""

import json
import sys

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema
from typing_extensions import override

from tollgate.routing.routing_file import RoutingFile


class _WithoutTitles(GenerateJsonSchema):
    """Generator without titles: editors would show "Keep Alive S" instead of `keep_alive_s`."""

    @override
    def field_title_should_be_set(self, schema: CoreSchema) -> bool:
        return False


def json_schema_text() -> str:
    """Return the content of the schema file. Only `tollgate check` resolves references."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **RoutingFile.model_json_schema(by_alias=True, schema_generator=_WithoutTitles),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(json_schema_text())

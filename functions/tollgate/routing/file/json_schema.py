"""The JSON Schema that editors complete and check routing.yaml with.

`python -m tollgate.routing.file.json_schema > infra/schema/routing.v1.json` writes it again.
"""

import json
import sys

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema
from typing_extensions import override

from tollgate.routing.schema import RoutingFile


class _WithoutTitles(GenerateJsonSchema):
    """Editors show a title in place of the key, and "Keep Alive S" says less than the key."""

    @override
    def field_title_should_be_set(self, schema: CoreSchema) -> bool:
        return False


def json_schema_text() -> str:
    """The schema as the file holds it; what references mean only `tollgate check` knows."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **RoutingFile.model_json_schema(by_alias=True, schema_generator=_WithoutTitles),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(json_schema_text())

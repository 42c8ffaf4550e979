"""The types of any JSON value and object, for fields of structs that msgspec decodes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

# msgspec cannot decode into pydantic's recursive type; it decodes any JSON value as an `object`.
if TYPE_CHECKING:
    from pydantic import JsonValue as JsonValue
else:
    JsonValue = object

JsonObject = Mapping[str, JsonValue]

"""The type of any JSON value, for fields of structs that msgspec decodes."""

from typing import TYPE_CHECKING

# msgspec cannot decode into pydantic's recursive type, and decodes any JSON value as an `object`.
if TYPE_CHECKING:
    from pydantic import JsonValue as JsonValue
else:
    JsonValue = object

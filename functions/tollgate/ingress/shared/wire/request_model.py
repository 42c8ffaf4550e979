"""The base class of request models, and types that many of them use."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from tollgate.core.unknown_fields import unknown_tree

NAME_LENGTH_MAX: Final = 256
URL_LENGTH_MAX: Final = 8_192

# A decoded JSON object. The type `Any` avoids validating each value a second time.
Json = dict[str, Any]


class Wire(BaseModel):
    """The base class of request models: no coercion, and unknown fields are stored for a report."""

    # Inputs are hidden in errors, because prompts must not appear in tracebacks. Models are built
    # at first use, because building all of them takes a fifth of a cold start.
    model_config = ConfigDict(
        extra="allow", strict=True, hide_input_in_errors=True, defer_build=True
    )


def unknown_of(model: Wire) -> Json | None:
    """Return the unknown fields of a message, part or tool as a tree; None if there are none."""
    return unknown_tree(model, ("cache_control", "extra_content")) or None


class CacheControl(Wire):
    """A mark that requests caching of the prompt up to this part."""

    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None


# The tags of unions have angle brackets, so that `field_path` can omit the tags from field paths.
String = Annotated[str, Tag("<string>")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]

_SHAPES: Final[Mapping[type, str]] = {
    str: "<string>",
    bool: "<boolean>",
    list: "<array>",
    dict: "<object>",
}


def shape(value: object) -> str | None:
    """Return which member of a union a value is by its type; None for a number and null."""
    return _SHAPES.get(type(value))


def tag_of(value: object, field: str, not_an_object: str) -> str | None:
    """Return the union tag in `field`; return `not_an_object` if the value is not an object.

    `not_an_object` is the tag of one member of the union; its validation then reports the wrong
    type.
    """
    if not isinstance(value, dict):
        return not_an_object
    tag = value.get(field)
    return f"<{tag}>" if isinstance(tag, str) else None


def by_field(field: str, *names: str) -> Any:
    """Return a discriminator that selects the union member by the name in a field.

    A value that is not an object goes to the first member, whose validation reports the wrong type.
    """
    *quoted, last = (f"'{name}'" for name in names)
    name_list = f"{', '.join(quoted)} or {last}" if quoted else last
    return Discriminator(
        lambda value: tag_of(value, field, f"<{names[0]}>"),
        custom_error_type=f"unknown_{field}",
        custom_error_message=f"must be {name_list}",
    )


def by_shape(members: str) -> Any:
    """Return a discriminator that selects the union member by type.

    `members` lists the accepted types for the error message, such as "a string or an object".
    """
    return Discriminator(
        shape, custom_error_type="unknown_shape", custom_error_message=f"must be {members}"
    )

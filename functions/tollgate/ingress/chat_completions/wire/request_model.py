"""What the models of client requests have in common."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, Tag

NAME_LENGTH_MAX: Final = 256

# JSON that was decoded already: checking it again value by value would only cost time.
Json = dict[str, Any]


class Wire(BaseModel):
    """A shape of the wire: no coercion, and unknown fields are kept to be reported."""

    # Inputs are prompts: they must not turn up in a traceback. Only what is validated by itself is
    # built: most of these are parts of others, and building all takes a fifth of a cold start.
    model_config = ConfigDict(
        extra="allow", strict=True, hide_input_in_errors=True, defer_build=True
    )


# Tags in angle brackets tell union members apart; they never appear in the name of a field.
String = Annotated[str, Tag("<string>")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]

_SHAPES: Final[Mapping[type, str]] = {str: "<string>", list: "<array>", dict: "<object>"}


def shape(value: object) -> str | None:
    """The tag of a union member that is a string, an array or an object."""
    return _SHAPES.get(type(value))


def tag_of(value: object, field: str, not_an_object: str) -> str | None:
    """What tells a union's members apart; any member can say that a value is not an object."""
    if not isinstance(value, dict):
        return not_an_object
    tag = value.get(field)
    return f"<{tag}>" if isinstance(tag, str) else None

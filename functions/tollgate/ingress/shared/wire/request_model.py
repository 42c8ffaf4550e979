"""The base and the common types of models of client requests."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

NAME_LENGTH_MAX: Final = 256

# JSON that is decoded already: validating each of its values again would only cost time.
Json = dict[str, Any]


class Wire(BaseModel):
    """Base of request models: no coercion, and unknown fields are kept to be reported."""

    # Inputs are prompts: they must not turn up in a traceback. A model is built
    # at its first use: most are parts of others, and building all takes a fifth of a cold start.
    model_config = ConfigDict(
        extra="allow", strict=True, hide_input_in_errors=True, defer_build=True
    )


# Tags in angle brackets tell union members apart; they never appear in the name of a field.
String = Annotated[str, Tag("<string>")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]

_SHAPES: Final[Mapping[type, str]] = {str: "<string>", list: "<array>", dict: "<object>"}


def shape(value: object) -> str | None:
    """Return the tag of a union member that is a string, an array or an object."""
    return _SHAPES.get(type(value))


def tag_of(value: object, field: str, not_an_object: str) -> str | None:
    """Return the tag in a field; for a value that is no object, a member that reports that."""
    if not isinstance(value, dict):
        return not_an_object
    tag = value.get(field)
    return f"<{tag}>" if isinstance(tag, str) else None


def by_field(field: str, *names: str) -> Any:
    """Return the discriminator of a union of objects by the name in a field.

    A value that is no object is left to the first member, which reports it.
    """
    *others, last = (f"'{name}'" for name in names)
    listed = f"{', '.join(others)} or {last}" if others else last
    return Discriminator(
        lambda value: tag_of(value, field, f"<{names[0]}>"),
        custom_error_type=f"unknown_{field}",
        custom_error_message=f"must be {listed}",
    )


def by_shape(members: str) -> Any:
    """Return the discriminator of a union of a string, an array or an object.

    `members` are the words in which a refusal lists them.
    """
    return Discriminator(
        shape, custom_error_type="unknown_shape", custom_error_message=f"must be {members}"
    )

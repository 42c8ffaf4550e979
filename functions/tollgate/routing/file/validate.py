"""Validates a document against the schema, and finds the position of each error."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tollgate.routing.file.document import Plain, Where, YamlDocument
from tollgate.routing.file.problems import Problem, looks_like_secret
from tollgate.routing.routing_file import RoutingFile
from tollgate.routing.schema import IncludedFile

_File = TypeVar("_File", bound=BaseModel)

_YAML_1_1_BOOLEAN: Final = re.compile(r"(?i:yes|no|on|off|y|n)")
_GROUPED_NUMBER: Final = re.compile(r"[-+]?[0-9]+(_[0-9]+)+")
_KEY_HINT: Final = (
    "write key: { env: OPENAI_API_KEY } or key: { secret: tollgate/openai }, with your own names"
)
_WORDS: Final[Mapping[str, str]] = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "mapping_type": "must be a mapping",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "string_too_short": "must not be empty",
    "too_short": "must have at least one item",
}
_PATTERN_WORDS: Final[Mapping[str, str]] = {
    "base_url": "must be http:// or https://, a host in ASCII and a path: no credentials, no "
    "query, no dot at the end of the host, no slash at the end",
    "region": "must be an AWS region such as us-east-1",
    "budget_left": "must be a share in whole percent such as <20%",
    "utc_window": "must be minutes of the day in UTC such as 16:30-00:30",
    "sha256": "must be 64 hexadecimal digits",
    "version": "must be a number or DRAFT, in quotes",
    "env": "must be the name of an environment variable such as OPENAI_API_KEY",
    "secret": "must be the name of a secret such as tollgate/openai",
    "allowed_domains": "must be a domain such as docs.example.com: lower case, no scheme, no path",
    "blocked_domains": "must be a domain such as docs.example.com: lower case, no scheme, no path",
    "entities": "must be a type of entity such as PERSON",
    "timezone": "must be a time zone such as Europe/Berlin",
}
_STEP_WORDS: Final = "must be a model's slug, author/model, or such slugs with their weights"
_ANY_NAME: Final = "the name contains characters that are not allowed, or is too long"
_NAME_WORDS: Final[Mapping[str, str]] = {
    "providers": "a provider is named by a slug of a-z, 0-9, dot, dash and underscore",
    "models": "a model is named author/model, in lower case",
    "aliases": "an alias is one word of letters, digits and . _ : / -",
    "routes": "a route is one word of letters, digits and . _ : / -",
    "guardrails": "a guardrail is named by a slug of a-z, 0-9, dot, dash and underscore",
    "presets": "a preset is named by a slug of a-z, 0-9, dot, dash and underscore",
    "key_tiers": "a key tier is named by a slug of a-z, 0-9, dot, dash and underscore",
}


def validate(
    document: YamlDocument, schema: type[_File], *, strict: bool = True
) -> tuple[_File | None, list[Problem]]:
    """Return the content as an instance of `schema`, and the problems of the content.

    `strict` is False for a schema of JSON bodies, whose lists, dates and decimals have other types.

    Entries with problems are left out, so that the others can be checked further. The instance is
    None if the remaining content is not valid either.
    """
    content = document.content
    if document.unreadable:
        return None, []
    if not isinstance(content, dict):
        kind = "is empty" if content is None else "must be a mapping"
        return None, [document.at_value((), "R004", f"the file {kind}")]
    try:
        return schema.model_validate(content, strict=strict), []
    except ValidationError as invalid:
        details = [
            detail
            for detail in invalid.errors(include_url=False)
            if not (detail["type"] == "too_short" and document.value(tuple(detail["loc"])))
        ]  # Invalid items must not make their list appear too short.
    misspelt = {_intended_key(schema, detail) for detail in details}
    problems = [
        _problem(document, schema, detail)
        for detail in details
        if not (detail["type"] == "missing" and tuple(detail["loc"]) in misspelt)
    ]
    try:
        return schema.model_validate(_without(content, details), strict=strict), problems
    except ValidationError:
        return None, problems


def _without(content: dict[str, Plain], details: list[ErrorDetails]) -> dict[str, Plain]:
    """Return the content without the entries or keys that have errors."""
    sections = {"version": 1} | {
        name: dict(section) if isinstance(section, dict) else section
        for name, section in content.items()
        if name != "version"
    }
    for detail in details:
        top, *below = detail["loc"]
        section = sections.get(str(top))
        if below and isinstance(section, dict):
            section.pop(str(below[0]), None)
        elif top != "version":
            sections.pop(str(top), None)
    return sections


def _problem(document: YamlDocument, schema: type[BaseModel], detail: ErrorDetails) -> Problem:
    where: Where = tuple(detail["loc"])
    last = where[-1]
    match detail["type"]:
        case "extra_forbidden":
            return _unknown_key(document, schema, where)
        case "missing":
            return _missing(document, where)
        case "literal_error" if last == "[key]":
            return _unknown_name(document, where, detail)
        case "string_pattern_mismatch" | "mapping_type" | "dict_type" if "try" in where:
            return _bad_step(document, where)
        case "string_pattern_mismatch" if last == "[key]":
            return document.at_key(where[:-1], "R010", _NAME_WORDS.get(str(where[0]), _ANY_NAME))
        case "model_type" if last == "key":
            return document.at_value(
                where, "R040", "provider keys are references, never values", hint=_KEY_HINT
            )
        case "string_pattern_mismatch" if where[-2:-1] == ("key",):
            return _bad_reference(document, where)
        case _:
            return _bad_value(document, where, detail)


def _bad_reference(document: YamlDocument, where: Where) -> Problem:
    value = document.value(where)
    if isinstance(value, str) and looks_like_secret(value):
        message = "provider keys are references, never values"
        return document.at_value(where, "R040", message, hint=_KEY_HINT)
    return document.at_value(where, "R004", f"{where[-1]} {_PATTERN_WORDS[str(where[-1])]}")


def _unknown_key(document: YamlDocument, schema: type[BaseModel], where: Where) -> Problem:
    name = str(where[-1])
    if schema is IncludedFile and name in _keys_of(RoutingFile, where[:-1]):
        return document.at_key(where, "R003", f'only the main file may have "{name}"')
    nearest = _nearest_key(schema, where)
    place = f"in {write_path(where[:-1])}" if len(where) > 1 else "at the top level"
    hint = f': did you mean "{nearest}"?' if nearest else ""
    return document.at_key(where, "R003", f'unknown key "{name}" {place}{hint}')


def _nearest_key(schema: type[BaseModel], where: Where) -> str | None:
    known = _keys_of(schema, where[:-1])
    return next(iter(get_close_matches(str(where[-1]), known, n=1)), None)


def _intended_key(schema: type[BaseModel], detail: ErrorDetails) -> Where | None:
    """Return the path of the known key that a misspelt key resembles."""
    where: Where = tuple(detail["loc"])
    if detail["type"] != "extra_forbidden":
        return None
    nearest = _nearest_key(schema, where)
    return (*where[:-1], nearest) if nearest else None


def _unknown_name(document: YamlDocument, where: Where, detail: ErrorDetails) -> Problem:
    """Return the problem of an unknown key in a mapping with a fixed set of keys."""
    *inside, name, _ = where
    known = re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))
    nearest = get_close_matches(str(name), known, n=1)
    hint = f': did you mean "{nearest[0]}"?' if nearest else f": there are {', '.join(known)}"
    message = f'unknown key "{name}" in {write_path(tuple(inside))}{hint}'
    return document.at_key(where[:-1], "R003", message)


def _bad_step(document: YamlDocument, where: Where) -> Problem:
    place = where[:-1] if where[-1] == "[key]" else where
    number = next(step for step in reversed(place) if isinstance(step, int)) + 1
    return document.at_value(place, "R004", f"item {number} {_STEP_WORDS}")


def _missing(document: YamlDocument, where: Where) -> Problem:
    inside = where[:-1]
    if where[-1] == "price" and where[0] in ("models", "server_tools"):
        if where[0] == "server_tools":
            message = f"{where[1]} has no price: it would be free to every key"
            return document.at_key(inside, "R030", message, hint="write call: 0 if free")
        offer = f"endpoint {document.value((*inside, 'provider'))} of {where[1]}"
        message = f"{offer} has no price: it would be free to every key"
        return document.at_key(inside, "R030", message, hint="write input: 0, output: 0 if free")
    place = f" in {write_path(inside)}" if inside else ""
    return document.at_key(inside, "R005", f'"{where[-1]}" is missing{place}')


def _bad_value(document: YamlDocument, where: Where, detail: ErrorDetails) -> Problem:
    value = document.value(where)
    kind = detail["type"]
    subject = str(where[-1]) if isinstance(where[-1], str) else f"item {where[-1] + 1}"
    code, hint = "R004", ""
    if isinstance(value, str) and kind == "bool_type" and _YAML_1_1_BOOLEAN.fullmatch(value):
        code, hint = "R006", f"{value} is text in YAML 1.2"
    elif isinstance(value, str) and _GROUPED_NUMBER.fullmatch(value):
        code = "R006"
        hint = f"{value} is text in YAML 1.2, write {value.replace('_', '')}"
    elif kind == "string_type" and value is not None and not isinstance(value, tuple | dict):
        hint = "write it in quotes"
    if kind in ("int_type", "float_type") and isinstance(value, str) and value.isdecimal():
        message = "has more digits than any number may have"
    elif kind == "literal_error":
        message, hint = _choice(detail, value)
    elif kind == "string_pattern_mismatch":
        key = next((str(step) for step in reversed(where) if step in _PATTERN_WORDS), "")
        message = _PATTERN_WORDS.get(key, "contains characters that are not allowed in a name")
    else:
        message = _WORDS.get(kind, _from_pydantic(detail["msg"]))
    return document.at_value(where, code, f"{subject} {message}", hint=hint)


def _choice(detail: ErrorDetails, value: Plain) -> tuple[str, str]:
    expected = str(detail["ctx"]["expected"])
    nearest = get_close_matches(str(value), re.findall(r"'([^']*)'", expected), n=1)
    words = expected.replace("'", '"')
    return f"must be {words}", f'did you mean "{nearest[0]}"?' if nearest else ""


def _from_pydantic(message: str) -> str:
    words = message.removeprefix("Value error, ").replace("Input should", "must")
    return re.sub(r"^(String|Tuple) should", "must", words)


def write_path(where: Where) -> str:
    """Return a path as text: `models.openai/gpt-5.endpoints[0]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    return "".join(steps).removeprefix(".")


def _keys_of(schema: type[BaseModel], where: Where) -> list[str]:
    """Return the keys that the schema allows at a path."""
    annotation: object = schema
    for step in where:
        annotation = _inside(_bare(annotation), step)
    found = _bare(annotation)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        return []
    return [field.alias or name for name, field in found.model_fields.items()]


def _inside(annotation: object, step: str | int) -> object:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if (field.alias or name) == step:
                return field.annotation
        return None
    arguments = get_args(annotation)  # Mapping[slug, section] or tuple[section, ...]
    return arguments[0] if get_origin(annotation) is tuple else next(reversed(arguments), None)


def _bare(annotation: object) -> object:
    """Return an annotation without constraints and without None."""
    origin = get_origin(annotation)
    if origin is Annotated or origin in (Union, UnionType):
        return _bare(next(part for part in get_args(annotation) if part is not NoneType))
    return annotation

"""Section `presets` in routing.yaml: settings of a request, which callers apply by naming the
preset."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, model_validator

from tollgate.core.content import ServerToolId
from tollgate.core.request import Effort
from tollgate.ingress.shared.wire.request_fields import SamplingFields
from tollgate.routing.scalars import Name, Slug, Strict, Tokens

# A variable in a system prompt. Other text in braces is left unchanged.
VARIABLE: Final = re.compile(r"\{\{([a-z][a-z0-9_]{0,63})\}\}", re.ASCII)
_SYSTEM_LENGTH_MAX: Final = 200_000
_INTEGER_LENGTH_MAX: Final = len(str(-(2**53)))

_VariableName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class VariableSection(Strict):
    """A variable of a system prompt; every caller of the preset must state its value."""

    type: Literal["string", "enum", "integer"]
    """Type of the value."""
    length_max: Annotated[int, Field(ge=1, le=20_000)] | None = None
    """Maximum number of characters; required for a string."""
    values: Annotated[tuple[_Text, ...], Field(max_length=256)] = ()
    """Possible values; required for an enum."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.type == "string") != (self.length_max is not None):
            raise ValueError("must have length_max if it is a string, and only then")
        if (self.type == "enum") != bool(self.values):
            raise ValueError("must have values if it is an enum, and only then")
        return self

    @property
    def longest(self) -> int:
        """Maximum number of characters that the variable's value adds to a prompt."""
        return max(self.length_max or _INTEGER_LENGTH_MAX, *map(len, self.values), 0)


class ParametersSection(SamplingFields):
    """Sampling parameters, with the names and ranges of requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _as_in_json(cls, stated: Any) -> Any:
        """Return the values of a YAML file in the types of JSON, as requests have them."""
        if not isinstance(stated, dict):
            return stated
        return {name: _json_value(value) for name, value in stated.items()}


def _json_value(value: Any) -> Any:
    match value:
        case Decimal():
            return float(value)
        case tuple():
            return [_json_value(each) for each in value]
        case dict():
            return {name: _json_value(each) for name, each in value.items()}
        case _:
            return value


class PresetSection(Strict):
    """A preset: a model or route, and fields that complete the requests that name it."""

    model: Name
    """Model, alias or route."""
    system: Annotated[str, StringConstraints(min_length=1, max_length=100_000)] | None = None
    """System prompt, in which `{{name}}` is the value of a variable."""
    variables: Annotated[Mapping[_VariableName, VariableSection], Field(max_length=32)] = Field(
        default={}
    )
    """Variables by name, each used in `system`."""
    parameters: ParametersSection | None = None
    """Sampling parameters, such as `temperature`."""
    max_tokens: Tokens | None = None
    """Limit of the answer in tokens."""
    reasoning: Effort | None = None
    """Effort of the reasoning."""
    tools: Annotated[tuple[ServerToolId, ...], Field(max_length=8)] = ()
    """Tools of `server_tools` that every request with the preset offers."""
    fixed: Annotated[tuple[Slug, ...], Field(max_length=32)] = ()
    """Keys of the preset, and names of `parameters`, whose values replace the caller's. For all
    others, the caller's value takes precedence.
    """

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        used = VARIABLE.findall(self.system or "")
        if undefined := sorted(set(used) - self.variables.keys()):
            raise ValueError(f"must define the variable {undefined[0]}, which system uses")
        if unused := sorted(self.variables.keys() - set(used)):
            raise ValueError(f"must use the variable {unused[0]} in system, or leave it out")
        longest = len(self.system or "") + sum(self.variables[name].longest for name in used)
        if longest > _SYSTEM_LENGTH_MAX:
            raise ValueError(f"must have a system of {_SYSTEM_LENGTH_MAX:,} characters at most")
        if unstated := sorted(set(self.fixed) - set(self._stated())):
            raise ValueError(f"must state {unstated[0]}, which is in fixed")
        return self

    def _stated(self) -> Iterator[str]:
        yield "model"
        yield from (
            name
            for name in ("system", "max_tokens", "reasoning")
            if getattr(self, name) is not None
        )
        if self.parameters is not None:
            yield from self.parameters.model_dump(exclude_none=True)


Presets = Annotated[Mapping[Slug, PresetSection], Field(max_length=256)]
_PRESETS: Final[TypeAdapter[Mapping[str, PresetSection]]] = TypeAdapter(Presets)


def read_presets(compiled: bytes) -> Mapping[str, PresetSection]:
    """Return the presets in a compiled catalog; raise ValueError for an invalid row."""
    return _PRESETS.validate_json(compiled, strict=True)

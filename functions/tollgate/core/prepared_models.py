"""Models whose validators the build has made, without pydantic.

The build asks pydantic for the core schema of each model and keeps it in a file beside the code.
In a function that has the file, a model is a plain class with the methods of its source, and
pydantic-core makes its instances by that schema, as it does for pydantic. Fields are in the schema
alone: annotations and their marks are not read.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import get_annotations
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic_core import SchemaSerializer, SchemaValidator
from typing_extensions import override

MODELS_FILE: Final = "models.pickle"
_FILE: Final = Path(__file__).parents[2] / MODELS_FILE
ARE_PREPARED: Final = _FILE.exists()

_Function = TypeVar("_Function", bound=Callable[..., object])
_MISSING: Final = object()

ConfigDict = dict


def write_models(parts: Iterable[tuple[type, Any, Any]]) -> bytes:
    """Return the file of models: the core schema and the config of each, read at its first use.

    Classes and functions are kept by name, so that a lambda in a model ends the build.
    """
    return pickle.dumps(
        {_name(model): pickle.dumps((schema, config), 5) for model, schema, config in parts}, 5
    )


def _name(model: type) -> str:
    return f"{model.__module__}.{model.__qualname__}"


@cache
def _prepared() -> Mapping[str, bytes]:
    # The file is part of the code, as bytecode is: the build wrote it beside these modules.
    models: Mapping[str, bytes] = pickle.loads(_FILE.read_bytes())  # noqa: S301
    return models


class _Validators(dict[type, SchemaValidator]):
    """The validators that were used, by model."""

    def __missing__(self, model: type) -> SchemaValidator:
        validator = self[model] = SchemaValidator(*_parts(model))
        return validator


_VALIDATORS: Final = _Validators()


def _parts(model: type) -> tuple[Any, Any]:
    parts: tuple[Any, Any] = pickle.loads(_prepared()[_name(model)])  # noqa: S301
    return parts


class UnreadMark:
    """A mark in an annotation, which only pydantic reads."""

    __slots__ = ()

    def __init__(self, *_: object, **__: object) -> None:
        """Take what pydantic takes."""


class Field:
    """The default of a field, and the name of its value in the environment."""

    __slots__ = ("default", "default_factory", "validation_alias")

    def __init__(
        self,
        default: Any = _MISSING,
        *,
        default_factory: Callable[[], Any] | None = None,
        validation_alias: Any = None,
        **_: object,
    ) -> None:
        """Take what pydantic takes."""
        self.default = default
        self.default_factory = default_factory
        self.validation_alias = validation_alias


def model_validator(**_: object) -> Callable[[_Function], _Function]:
    """Return a decorator that leaves a method as it is: the schema names it."""
    return _same


def _same(function: _Function) -> _Function:
    return function


class PreparedModel:
    """A model without fields of its own, with those methods of pydantic's that functions call."""

    # Set by pydantic-core, past `__setattr__`.
    __slots__ = (
        "__dict__",
        "__pydantic_extra__",
        "__pydantic_fields_set__",
        "__pydantic_private__",
    )
    __pydantic_extra__: dict[str, object] | None
    __pydantic_fields_set__: set[str]
    model_config: ClassVar[dict[str, object]] = {}

    @override
    def __init_subclass__(cls, **_: object) -> None:
        """Take options of a class, which are in its schema."""

    def __init__(self, /, **values: Any) -> None:
        """Validate the values; raise ValidationError."""
        _VALIDATORS[type(self)].validate_python(values, self_instance=self)

    @classmethod
    def model_validate(cls, value: object, *, strict: bool | None = None) -> Self:
        """Validate an object in Python; raise ValidationError."""
        model: Self = _VALIDATORS[cls].validate_python(value, strict=strict)
        return model

    @classmethod
    def model_validate_json(cls, value: str | bytes, *, strict: bool | None = None) -> Self:
        """Validate JSON; raise ValidationError."""
        model: Self = _VALIDATORS[cls].validate_json(value, strict=strict)
        return model

    @classmethod
    def model_construct(cls, **values: Any) -> Self:
        """Return a model of values that are known to be valid, and of defaults."""
        model = cls.__new__(cls)
        model.__setstate__(_state({**_defaults(cls), **values}, set(values), None))
        return model

    def model_copy(self, *, update: Mapping[str, object]) -> Self:
        """Return a copy with other values, which are known to be valid."""
        model = self.__new__(type(self))
        stated = self.model_fields_set | update.keys()
        model.__setstate__(_state({**self.__dict__, **update}, stated, self.model_extra))
        return model

    @override
    def __getstate__(self) -> Mapping[str, object]:
        return _state({**self.__dict__}, self.model_fields_set, self.model_extra)

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """Take the state of another model, or of pydantic's that is a default in the schema."""
        for name in PreparedModel.__slots__:
            object.__setattr__(self, name, state[name])

    def model_dump(self, **options: Any) -> dict[str, object]:
        """Return the fields as a mapping, by the options of pydantic."""
        dumped: dict[str, object] = SchemaSerializer(*_parts(type(self))).to_python(self, **options)
        return dumped

    @property
    def model_extra(self) -> dict[str, object] | None:
        """The values of fields that the model does not have."""
        return self.__pydantic_extra__

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were stated."""
        return self.__pydantic_fields_set__

    @override
    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"{type(self).__name__} is not changed: {name}")

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from self.__dict__.items()
        yield from (self.model_extra or {}).items()

    @override
    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, PreparedModel)
            and self.__dict__ == other.__dict__
            and self.__pydantic_extra__ == other.__pydantic_extra__
        )

    @override
    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))


def _state(
    values: dict[str, object], stated: set[str], extra: dict[str, object] | None
) -> Mapping[str, object]:
    """Return the state of a model in pydantic's form."""
    return {
        "__dict__": values,
        "__pydantic_extra__": extra,
        "__pydantic_fields_set__": stated,
        "__pydantic_private__": None,
    }


def _defaults(model: type) -> dict[str, object]:
    """Return the defaults of fields, each of its own class or of the nearest base."""
    found = {}
    for base in reversed(model.__mro__[: model.__mro__.index(PreparedModel)]):
        for field in get_annotations(base):
            default = base.__dict__.get(field, _MISSING)
            if isinstance(default, Field):
                make = default.default_factory
                default = default.default if make is None else make()
            if default is not _MISSING:
                found[field] = default
    return found


def environment_names(settings: type[PreparedModel]) -> Mapping[str, tuple[str, ...]]:
    """Return the variables of each field of settings, in lower case, the one that wins first."""
    prefix = str(settings.model_config["env_prefix"])
    return {
        field: tuple(name.lower() for name in (alias, prefix + field) if name)
        for field in get_annotations(settings)
        for alias in (getattr(settings.__dict__.get(field), "validation_alias", None),)
    }


class PreparedRootModel(PreparedModel):
    """A model of one value, which need not be an object."""

    root: Any

    def __class_getitem__(cls, _: object) -> type[Self]:
        return cls

"""References by dotted name to objects that a process imports at first use.

A dotted name in a table costs no import until the entry is called. The object may belong to a
higher layer, which the table's module must not import directly.
"""

from importlib import import_module
from typing import Generic, TypeVar, cast

from msgspec import Struct

_Object = TypeVar("_Object")


def import_object(name: str) -> object:
    """Import the module before the colon of a name and return its attribute after the colon."""
    module, _, attribute = name.partition(":")
    found: object = getattr(import_module(module), attribute)
    return found


class DottedName(Struct, Generic[_Object], frozen=True):
    """The name of an object, `tollgate.core.money.amounts:usd`; a call imports and returns it."""

    name: str

    def __call__(self) -> _Object:
        # `tests/unit/test_dotted_names.py` imports every named object and checks the type of those
        # named in tables.
        return cast(_Object, import_object(self.name))

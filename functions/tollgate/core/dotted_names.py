"""Objects that tables name by dotted names, and that a process imports at their first use.

A row with a dotted name costs no import until it is called, and the name may belong to a higher
layer, which the table's own module must not import.
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
    """The name of an object, `tollgate.core.money.amounts:USD`; a call imports and returns the
    object."""

    name: str

    def __call__(self) -> _Object:
        # `tests/unit/test_dotted_names.py` resolves the names of all tables and checks their types.
        return cast(_Object, import_object(self.name))

"""The names of ignored fields, for the header `x-tollgate-adapted`."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tollgate.ingress.shared.wire.request_model import Wire

# Names are sent in a header, so they are limited in number and length.
_IGNORED_MAX: Final = 32
_IGNORED_LENGTH_MAX: Final = 64
_UNPRINTABLE: Final = re.compile(r"[^\w.:\[\]-]", re.ASCII)


def extra_fields(model: Wire, path: str = "") -> Iterator[str]:
    """Yield the undeclared fields of a request model, except those with null."""
    for name, value in (model.model_extra or {}).items():
        if value is not None:
            yield path + name


def printable_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, each once, with only characters that a header can carry."""
    printable = (_UNPRINTABLE.sub("_", name)[:_IGNORED_LENGTH_MAX] for name in names)
    shown = list(dict.fromkeys(printable))
    if len(shown) > _IGNORED_MAX:
        shown[_IGNORED_MAX:] = ["..."]
    return tuple(shown)

"""Names of keys: a workspace has no two keys of one name, and finds a key by its name or id."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import count
from typing import Final

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError

_SUGGESTIONS_MAX: Final = 3


class KeyName(Struct, frozen=True):
    """The name of a key that exists, or that was deleted."""

    key_id: str
    label: str
    deleted: bool = False


def refuse_taken_name(names: Iterable[KeyName], label: str) -> None:
    """Raise RequestError if a key that exists has this name; a deleted key has freed its name."""
    for name in names:
        if name.label == label and not name.deleted:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"There is a key named {label} already: {name.key_id}.",
                param="name",
            )


def choose_free_name(names: Iterable[KeyName], label: str) -> str:
    """Return the name, with the first number that makes it free if a key has it already."""
    taken = {name.label for name in names if not name.deleted}
    numbered = (f"{label} {number}" for number in count(2))
    return label if label not in taken else next(it for it in numbered if it not in taken)


def find_key_id(names: Sequence[KeyName], wanted: str, *, param: str) -> str:
    """Return the id of the key with this id or name; a key that exists goes before a deleted one.

    Raises RequestError if there is none, with the nearest names, or if several have the name: keys
    made before names were unique, or deleted keys.
    """
    if any(name.key_id == wanted for name in names):
        return wanted
    same = [name for name in names if name.label == wanted]
    found = [name for name in same if not name.deleted] or same
    match found:
        case [name]:
            return name.key_id
        case []:
            nearest = get_close_matches(
                wanted, sorted({name.label for name in names}), n=_SUGGESTIONS_MAX
            )
            hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
            problem = f"There is no key with the name or id {wanted}.{hint}"
        case _:
            ids = ", ".join(name.key_id for name in found)
            problem = f"{len(found)} keys are named {wanted}: give the id of one of them, {ids}."
    raise RequestError(ErrorCode.NOT_FOUND, problem, param=param)

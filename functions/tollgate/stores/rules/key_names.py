"""Names of keys, which are unique within a workspace, and the search for a key by name or id."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import count
from typing import Final

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError

_SUGGESTIONS_MAX: Final = 3


class KeyName(Struct, frozen=True):
    """The name of an existing or a deleted key."""

    key_id: str
    label: str
    deleted: bool = False


def refuse_taken_name(names: Iterable[KeyName], label: str) -> None:
    """Raise RequestError if an existing key has this name; names of deleted keys are free."""
    for name in names:
        if name.label == label and not name.deleted:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"A key named {label} exists already: {name.key_id}.",
                param="name",
            )


def choose_free_name(names: Iterable[KeyName], label: str) -> str:
    """Return the name, with a number appended if it is taken."""
    taken = {name.label for name in names if not name.deleted}
    numbered = (f"{label} {number}" for number in count(2))
    return label if label not in taken else next(name for name in numbered if name not in taken)


def find_key_id(names: Sequence[KeyName], wanted: str, *, param: str) -> str:
    """Return the id of the key with this id or name; existing keys take precedence over deleted
    ones.

    Raises RequestError with similar names if no key matches. Deleted keys, and keys from before
    names were unique, may share a name, in which case RequestError lists their ids.
    """
    if any(name.key_id == wanted for name in names):
        return wanted
    same = [name for name in names if name.label == wanted]
    matches = [name for name in same if not name.deleted] or same
    match matches:
        case [name]:
            return name.key_id
        case []:
            nearest = get_close_matches(
                wanted, sorted({name.label for name in names}), n=_SUGGESTIONS_MAX
            )
            hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
            problem = f"There is no key with the name or id {wanted}.{hint}"
        case _:
            ids = ", ".join(name.key_id for name in matches)
            problem = f"{len(matches)} keys are named {wanted}: give the id of one of them, {ids}."
    raise RequestError(ErrorCode.NOT_FOUND, problem, param=param)

"""The kinds of content that lists of models name, by OpenRouter's names, and filters by them."""

from collections.abc import Mapping
from typing import Final, get_args

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import Modality
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.routing.planning.exclusions import shorten

_ALL: Final = "all"
# OpenRouter calls a document `file`; the other modalities have the same names.
SHOWN_MODALITIES: Final[Mapping[Modality, str]] = {"pdf": "file"}
# What a model may take or make, as lists are filtered by it.
MODALITIES: Final = frozenset(
    {
        *(SHOWN_MODALITIES.get(each, each) for each in get_args(Modality)),
        *(it.makes for it in WORK_KINDS.values()),
    }
)


def parse_modalities(listed: str | None, param: str) -> frozenset[str]:
    """Return the modalities of a list, none for `all`; RequestError for an unknown one."""
    names = frozenset((listed or _ALL).split(","))
    if unknown := names - MODALITIES - {_ALL}:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{param} has {shorten(min(unknown))}; known are {', '.join(sorted(MODALITIES))}.",
            param=param,
        )
    return frozenset() if _ALL in names else names

"""Kinds of content in lists of models, by OpenRouter's names, and the parsing of filters."""

from collections.abc import Mapping
from typing import Final, get_args

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import Modality
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.routing.planning.exclusions import shorten

_ALL: Final = "all"
# OpenRouter calls a document `file`; the other modalities have the same names here.
SHOWN_MODALITIES: Final[Mapping[Modality, str]] = {"pdf": "file"}
# All modalities by which lists can be filtered: what models accept, and what they make.
MODALITIES: Final = frozenset(
    {
        *(SHOWN_MODALITIES.get(name, name) for name in get_args(Modality)),
        *(kind.makes for kind in WORK_KINDS.values()),
    }
)


def parse_modalities(listed: str | None, param: str) -> frozenset[str]:
    """Return the modalities of a list, none for `all`; raise RequestError for an unknown one."""
    names = frozenset((listed or _ALL).split(","))
    if unknown := names - MODALITIES - {_ALL}:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{param} has {shorten(min(unknown))}; possible are {', '.join(sorted(MODALITIES))}.",
            param=param,
        )
    return frozenset() if _ALL in names else names

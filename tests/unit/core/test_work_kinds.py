"""Every kind of work has its row in the one table of kinds."""

from typing import get_args

from tollgate.core.request import WorkKind
from tollgate.core.work.kinds import WORK_KINDS


def test_every_kind_has_a_row_of_its_own() -> None:
    assert [*WORK_KINDS] == [*get_args(WorkKind)]
    for fact in ("route", "makes"):
        facts = [getattr(row, fact) for row in WORK_KINDS.values()]
        assert sorted({*facts}) == sorted(facts)

"""A folder forgets what a bucket forgets, by the same rules.

Keeps C69.
"""

import os
import re
from pathlib import Path

from tests.stores import HandClock
from tollgate.aws.objects import FolderObjects
from tollgate.core.clock import DAY_S
from tollgate.stores.records.expired_objects import EXPIRY_DAYS, ExpiredObjects

TEMPLATE = Path(__file__).parents[2] / "infra" / "template.yaml"
_RULE = re.compile(r"Prefix: (\S+), ExpirationInDays: (\d+)")


def test_c69_the_rules_of_a_folder_are_those_of_the_bucket() -> None:
    rules = dict(_RULE.findall(TEMPLATE.read_text(encoding="utf-8")))
    # The sweeper removes uploads earlier, on both kinds of host.
    assert rules.pop("uploads/") == "1"
    assert {prefix: str(days) for prefix, days in EXPIRY_DAYS.items()} == rules


async def test_c69_objects_of_a_folder_end_on_their_day_and_no_others(tmp_path: Path) -> None:
    clock, folder = HandClock(), FolderObjects(tmp_path)
    old, kept = list[str](), ["files/kept/w/a", "catalogs/a"]
    for prefix, days in EXPIRY_DAYS.items():
        for age_s, keys in ((days * DAY_S, old), (days * DAY_S - 1, kept)):
            keys.append(f"{prefix}w/{age_s}")
            await folder.put(keys[-1], b"content")
            os.utime(tmp_path / keys[-1], (clock.now - age_s, clock.now - age_s))
    for key in kept[:2]:
        await folder.put(key, b"content")
        os.utime(tmp_path / key, (0, 0))
    assert await ExpiredObjects(folder, clock).remove() == len(old)
    assert [await folder.get(key) for key in old] == [None] * len(old)
    assert [await folder.get(key) for key in kept] == [b"content"] * len(kept)
    assert await ExpiredObjects(folder, clock).remove() == 0

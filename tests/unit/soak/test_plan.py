"""The plan of a soak: a seed deals its faults, every kind in every period."""

from collections import Counter

from tests.soak.plan import FAULT_KINDS, FaultWindow, Plan, deal_faults, is_calm


def test_a_seed_deals_the_same_faults_and_every_kind_in_every_period() -> None:
    plan = Plan(seconds=3_600, seed=7)
    faults = deal_faults(plan)
    assert faults == deal_faults(plan)
    assert faults != deal_faults(Plan(seconds=3_600, seed=8))
    assert Counter(it.kind for it in faults) == dict.fromkeys(FAULT_KINDS, 12)
    assert all(0 <= it.begins_s <= it.ends_s <= plan.seconds for it in faults)


def test_what_begins_or_ends_within_a_fault_or_its_aftermath_is_not_calm() -> None:
    faults = [FaultWindow(kind="frozen", begins_s=100.0, ends_s=105.0)]
    for begins_s, ends_s, calm in (
        (90.0, 99.0, True),
        (90.0, 101.0, False),
        (102.0, 103.0, False),
        (114.0, 115.0, False),
        (115.5, 116.0, True),
        (90.0, 120.0, False),
    ):
        assert is_calm(faults, begins_s, ends_s, 10.0) is calm

"""Usage keeps what was not said apart from zero.

Keeps C26, C65.
"""

from hypothesis import given
from msgspec.structs import fields

from tests.strategies import usages
from tollgate.core.usage import Usage


def test_the_last_report_of_a_class_wins_and_silence_changes_nothing() -> None:
    first = Usage(uncached_input_tokens=10, output_tokens=1, reasoning_tokens=4)
    later = Usage(output_tokens=7, reasoning_tokens=0)
    assert first.update(later) == Usage(
        uncached_input_tokens=10, output_tokens=7, reasoning_tokens=0
    )


@given(first=usages, later=usages)
def test_an_update_takes_each_class_from_the_last_report_that_has_it(
    first: Usage, later: Usage
) -> None:
    updated = first.update(later)
    for field in fields(Usage):
        said = getattr(later, field.name)
        expected = getattr(first, field.name) if said is None else said
        assert getattr(updated, field.name) == expected


@given(one=usages, two=usages, three=usages)
def test_updates_may_be_grouped(one: Usage, two: Usage, three: Usage) -> None:
    assert one.update(two).update(three) == one.update(two.update(three))


def test_c26_the_classes_of_input_add_up_and_reasoning_is_part_of_output() -> None:
    usage = Usage(
        uncached_input_tokens=1,
        cache_read_input_tokens=2,
        cache_write_5m_input_tokens=4,
        cache_write_1h_input_tokens=8,
        output_tokens=16,
        reasoning_tokens=16,
    )
    assert usage.input_tokens == 15
    assert usage.cache_write_input_tokens == 12
    assert usage.total_tokens == 31
    assert Usage().total_tokens == 0


@given(usage=usages)
def test_c65_a_part_is_never_larger_than_its_whole(usage: Usage) -> None:
    fit = usage.fit_parts()
    assert (fit.reasoning_tokens or 0) <= (fit.output_tokens or 0)
    assert (fit.input_tokens, fit.output_tokens) == (usage.input_tokens, usage.output_tokens)


def test_c65_each_part_is_cut_to_its_own_whole() -> None:
    fit = Usage(
        uncached_input_tokens=1,
        cache_read_input_tokens=2,
        output_tokens=3,
        audio_input_tokens=9,
        cache_read_audio_input_tokens=9,
        audio_output_tokens=9,
        reasoning_tokens=9,
    ).fit_parts()
    assert (fit.audio_input_tokens, fit.cache_read_audio_input_tokens) == (1, 2)
    assert (fit.audio_output_tokens, fit.reasoning_tokens) == (3, 3)
    assert Usage(reasoning_tokens=9).fit_parts() == Usage()

"""The open parts of a stream: indices are dense, and every part that began ends once."""

from tollgate.core.content import Part, Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.events import PartDelta, PartEnd, PartStart
from tollgate.providers.shared.parts import OpenPart, Parts

TEXT, THOUGHT = Text(text=""), Reasoning(text="")


def call(id_: str) -> ToolCall:
    return ToolCall(id=id_, name="now", arguments="")


def opened(parts: Parts[str, OpenPart], key: str, part: Part) -> OpenPart:
    """Open a part, and check that its beginning is the last event of that."""
    made = OpenPart(part=part)
    *_, start = parts.open(key, made)
    assert start == PartStart(index=made.index, part=part)
    return made


def test_indices_are_dense_and_calls_stay_open_beside_each_other() -> None:
    parts = Parts[str, OpenPart]()
    made = [opened(parts, "a", TEXT), opened(parts, "b", call("1")), opened(parts, "c", call("2"))]
    assert [each.index for each in made] == [0, 1, 2]
    assert parts.has_calls is True
    assert [*parts.close("b")] == [PartDelta(index=1, text="{}"), PartEnd(index=1)]
    assert [*parts.close_all()] == [
        PartEnd(index=0),
        PartDelta(index=2, text="{}"),
        PartEnd(index=2),
    ]


def test_a_second_text_closes_the_first_but_no_reasoning() -> None:
    parts = Parts[str, OpenPart]()
    opened(parts, "a", THOUGHT)
    opened(parts, "b", TEXT)
    assert next(parts.open("c", OpenPart(part=TEXT))) == PartEnd(index=1)
    assert parts.get("b") is None
    assert parts.get("a") is not None


def test_a_held_part_that_never_began_is_no_part() -> None:
    parts = Parts[str, OpenPart]()
    held = OpenPart(part=TEXT)
    assert [*parts.hold("a", held)] == []
    assert [*parts.close("a")] == []
    assert parts.count == 0


def test_what_the_provider_wants_back_goes_out_with_the_end() -> None:
    parts = Parts[str, OpenPart]()
    made = opened(parts, "a", THOUGHT)
    made.provenance = Provenance(signer="acme", signature="s")
    assert made.add("Hm.") == PartDelta(index=0, text="Hm.")
    assert [*parts.close("a")] == [PartEnd(index=0, provenance=made.provenance)]
    assert [*parts.close("a")] == []


def test_a_refusal_that_comes_whole_is_one_part() -> None:
    parts = Parts[str, OpenPart]()
    opened(parts, "a", TEXT)
    assert [*parts.refuse("No.")] == [
        PartStart(index=1, part=Refusal(text="")),
        PartDelta(index=1, text="No."),
        PartEnd(index=1),
    ]

"""No decision of the engine or of the planner reads a message."""

from pathlib import PurePosixPath

import pytest

from tests.tidy.decisions import decisions_read_no_prose
from tests.tidy.source import Source, sources_of


def lines(path: str, text: str) -> list[int]:
    source = Source(PurePosixPath("functions/tollgate", path), text)
    return [finding.line for finding in decisions_read_no_prose(source)]


@pytest.mark.parametrize("folder", ["engine", "routing"])
def test_no_decision_reads_a_message(folder: str) -> None:
    found = [
        str(finding)
        for source in sources_of(f"functions/tollgate/{folder}")
        for finding in decisions_read_no_prose(source)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "a = [kind for kind in KINDS if kind in reason]",
        "a = 'tier' in found.reason",
        "if 'tier' not in error.message: 1",
        "if found.reason == 'is not for this tier': 1",
        "if error.message.startswith('This key'): 1",
        "if hint.lower().endswith('YAML 1.2'): 1",
        "if re.search('tier', problem.message): 1",
        "match found.reason:\n case 'a': 1",
        "if 'tier' in error.args[0].message[:9]: 1",
    ],
)
def test_a_decision_that_reads_a_message_is_found(text: str) -> None:
    assert lines("routing/planning/exclusions.py", text) == [1]
    assert lines("engine/attempts.py", text) == [1]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("routing/planning/exclusions.py", "if found.cause is Cause.TIER_COST: 1"),
        ("routing/planning/offers.py", "if reason is None: 1"),
        ("engine/files/media.py", "for message in request.messages: 1"),
        ("engine/files/media.py", "match message:\n case UserMessage(): 1"),
        ("engine/files/media.py", "if message.role == 'user': 1"),
        ("routing/file/problems.py", "text = f'{message}: {hint}' if hint else message"),
        ("providers/shared/refusals.py", "a = 'context' in error.message"),
    ],
)
def test_what_reads_no_message_is_left_alone(path: str, text: str) -> None:
    assert lines(path, text) == []

"""The one version in requirements.txt."""

import pytest

from tollgate.cli.upgrades.requirements import (
    NotRequirements,
    Pin,
    read_version,
    render_requirements,
)

PINS = {name: Pin("1.2.0", "a" * 64) for name in ("tollgate-llm", "tollgate-llm-slim")}


def test_what_is_written_is_read_again() -> None:
    lock = "# by make lock\nclick==8.0 \\\n    --hash=sha256:bb\n    # via -c infra/run.txt\n"
    text = render_requirements(PINS, lock)
    assert read_version(text) == "1.2.0"
    assert text.count("tollgate-llm-slim==1.2.0 \\\n    --hash=sha256:" + "a" * 64 + "\n") == 1
    assert text.endswith("a\nclick==8.0 \\\n    --hash=sha256:bb\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "pins no version"),
        ("tollgate==1.0.0", "pins no version"),
        ("tollgate-llm==1.0\ntollgate-llm-slim==1.1 --hash=sha256:a", "pins 1.0 and 1.1"),
    ],
)
def test_only_one_version_is_accepted(text: str, reason: str) -> None:
    with pytest.raises(NotRequirements, match=reason):
        read_version(text)


def test_short_forms_are_read() -> None:
    assert read_version("tollgate-llm==1.0.0") == "1.0.0"
    assert read_version("tollgate-llm==1.0.0 --hash=sha256:a\n") == "1.0.0"

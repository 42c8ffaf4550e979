"""The table of clients: what is read from a report, and what counts as a change."""

from dataclasses import replace

from tests.live.agents.table import Cell, differences, dump, load, moved_versions, read_report

REPORT = """\
<testsuites><testsuite name="pytest">
  <testcase name="test_c80_an_sdk_is_answered[tool-npm:ai-chat]"><properties>
    <property name="client" value="npm:ai" /><property name="format" value="chat" />
    <property name="version" value="7.0.1" /></properties></testcase>
  <testcase name="test_c66_c80_a_session"><properties>
    <property name="client" value="npm:ai" /><property name="format" value="chat" />
    <property name="version" value="7.0.1" /></properties>
    <failure message="assert 1&#10;  == 2">...</failure></testcase>
  <testcase name="test_c80_skipped"><properties>
    <property name="client" value="npm:ai" /><property name="format" value="chat" />
    <property name="version" value="7.0.1" /></properties><skipped message="no ai" /></testcase>
  <testcase name="test_of_another_kind" />
</testsuite></testsuites>
"""
PASSED = Cell("npm:ai", "chat", "an sdk is answered: tool", "7.0.1", "passed")
FAILED = Cell("npm:ai", "chat", "a session", "7.0.1", "assert 1 == 2")


def test_a_report_is_read() -> None:
    assert read_report(REPORT) == [FAILED, PASSED]


def test_the_table_is_kept_a_cell_a_line() -> None:
    text = dump([FAILED, PASSED], "2026-11-27")
    assert load(text) == [FAILED, PASSED]
    assert len(text.splitlines()) == 4


def test_what_is_seen_otherwise_differs() -> None:
    now = [replace(PASSED, version="7.0.2", seen="a | `b`")]
    assert list(differences([PASSED], now)) == [
        "| `npm:ai` | `chat` | `an sdk is answered: tool` | `7.0.1: passed` | `7.0.2: a / 'b'` |"
    ]


def test_a_cell_that_is_new_or_gone_differs() -> None:
    assert [line.count("not tried") for line in differences([PASSED], [FAILED])] == [1, 1]


def test_a_version_alone_is_no_difference() -> None:
    now = [replace(PASSED, version="7.0.2")]
    assert list(differences([PASSED], now)) == []
    assert list(moved_versions([PASSED], now)) == ["- npm:ai: 7.0.1 → 7.0.2"]

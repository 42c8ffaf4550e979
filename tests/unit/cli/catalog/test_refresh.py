"""`tollgate catalog refresh`: what it changes, what it leaves, and what a person decides.

Keeps C65.
"""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from tests.unit.cli.catalog.published import HEAD, block, entry, model, price_map
from tollgate.cli.catalog.evidence import gather_evidence
from tollgate.cli.catalog.facts import PublishedFacts
from tollgate.cli.catalog.refresh import render_verdicts
from tollgate.cli.catalog.verdicts import judge_file
from tollgate.cli.main import main
from tollgate.core.clock import SystemClock
from tollgate.routing.file.load import load

TODAY = datetime.fromtimestamp(SystemClock().now_s(), UTC).date()


def refresh(folder: Path, *options: str, **entries: Any) -> Result:
    wheel = price_map(folder, **{f"together_ai__{name}": it for name, it in entries.items()})
    paths = (folder / "routing.yaml", "--price-map", wheel, "--evidence", folder / "seen.json")
    return CliRunner().invoke(main, ["catalog", "refresh", *map(str, paths), *options])


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(*models: str) -> Path:
        path = tmp_path / "routing.yaml"
        path.write_text(HEAD + "".join(models), encoding="utf-8")
        return path

    return written


def test_c65_a_price_that_changed_is_edited_in_place(tmp_path: Path, write: Any) -> None:
    file = write(model("m", block("1.00", "2.00")), "# The end.\n")
    published = entry(1, 3, cache_read_input_token_cost=1e-07)
    shown = refresh(tmp_path, m=published)
    assert shown.exit_code == 1
    assert "+          output: 3.00" in shown.output
    assert "2.00" in file.read_text()
    assert refresh(tmp_path, "--write", m=published).exit_code == 0
    expected = model("m", block("1.00", "3.00", "litellm 9.8.7 alone")).replace(
        "output: 3.00\n", "output: 3.00\n          cache_read: 0.10\n"
    )
    expected = expected.replace("2026-11-01", TODAY.isoformat())
    assert file.read_text() == f"{HEAD}{expected}# The end.\n"
    again = refresh(tmp_path, m=published)
    assert (again.exit_code, "@@" in again.output) == (0, False)


def test_a_price_on_one_line_and_an_included_file_are_edited_too(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    price = "        price: { input: 1, output: 2, source: litellm 1.0.0, checked: 2026-11-01 }\n"
    part = tmp_path / "more.yaml"
    part.write_text("version: 1\nmodels:\n" + model("m", price), encoding="utf-8")
    main_file = tmp_path / "routing.yaml"
    main_file.write_text(HEAD.replace("models:\n", "include: [more.yaml]\n"), encoding="utf-8")
    before = main_file.read_text()
    result = refresh(tmp_path, "--write", m=entry(1.5, 2, cache_read_input_token_cost=5e-07))
    assert result.exit_code == 0, result.output
    assert (
        "price: { input: 1.50, output: 2.00, cache_read: 0.50, source: litellm 9.8.7 alone, "
        f"checked: {TODAY} }}" in part.read_text()
    )
    assert main_file.read_text() == before


def test_c65_rates_by_size_are_added_and_replaced_unless_a_comment_would_be_lost(
    tmp_path: Path, write: Any
) -> None:
    tier = {"input_cost_per_token_above_200k_tokens": 6e-06}
    old = (
        "        overrides:\n          - when: { prompt_tokens_over: 100000 }\n"
        "            price: { input: 5 }\n"
    )
    new = (
        "        overrides:\n          - when: { prompt_tokens_over: 200000 }\n"
        "            price: { input: 6.00 }\n"
    )
    for before in ("", old):
        file = write(model("m", block("1", "2"), more=before), model("n", block("1", "2")))
        assert refresh(tmp_path, "--write", m=entry(1, 2, **tier)).exit_code == 0
        assert new in file.read_text()
        assert old not in file.read_text()
    commented = old.replace("5 }", "5 } # since May")
    file = write(model("m", block("1", "2"), more=commented))
    shown = refresh(tmp_path, "--write", m=entry(1, 2, **tier))
    assert "! acme/m @ together: edit by hand" in shown.output
    assert commented in file.read_text()


def test_a_page_that_a_person_named_is_kept_and_what_differs_is_noted(
    tmp_path: Path, write: Any
) -> None:
    file = write(model("m", block("1", "2", "https://acme.example/prices")))
    shown = refresh(tmp_path, "--write", m=entry(1, 3))
    assert (
        "publishers disagree; the file has the price from https://acme.example/prices"
        in shown.output
    )
    text = file.read_text()
    assert 'source: "https://acme.example/prices; litellm 9.8.7 has output 3"' in text
    assert "output: 2\n" in text


def test_what_nobody_publishes_stays_as_it_is(tmp_path: Path, write: Any) -> None:
    file = write(model("m", block("1", "2")))
    before = file.read_text()
    shown = refresh(tmp_path, "--write", other=entry(1, 3))
    assert "1 endpoints compared" in shown.output
    assert "1 not published" in shown.output
    assert file.read_text() == before


def test_a_last_day_is_added_with_its_source(tmp_path: Path, write: Any) -> None:
    file = write(model("m", block("1", "2")))
    assert refresh(tmp_path, "--write", m=entry(1, 2, deprecation_date="2099-01-31")).exit_code == 0
    assert f"        retires: 2099-01-31 # litellm 9.8.7, {TODAY}\n" in file.read_text()


def test_limits_and_abilities_are_for_a_person(tmp_path: Path, write: Any) -> None:
    file = write(model("m", block("1", "2", "litellm 9.8.7 alone")))
    before = file.read_text()
    facts = entry(1, 2, max_output_tokens=50, max_input_tokens=9000, supports_vision=True)
    shown = refresh(tmp_path, m=facts)
    assert "max_output 100, litellm 9.8.7 has 50" in shown.output
    assert "context 1000, litellm 9.8.7 has 9000" in shown.output
    assert "input without image, which litellm 9.8.7 has" in shown.output
    assert file.read_text() == before


@pytest.mark.parametrize(("stated", "noted"), [(1048, False), (1053, True), (990, True)])
def test_a_context_that_is_rounded_down_is_no_difference(
    tmp_path: Path, write: Any, stated: int, *, noted: bool
) -> None:
    write(model("m", block("1", "2", "litellm 9.8.7 alone")))
    shown = refresh(tmp_path, m=entry(1, 2, max_input_tokens=stated))
    assert (f"context 1000, litellm 9.8.7 has {stated}" in shown.output) == noted


def test_what_is_to_be_decided_and_what_changes_come_before_what_stays(
    tmp_path: Path, write: Any
) -> None:
    write(
        model("stays", block("1", "2", "https://acme.example/prices")),
        model("changes", block("1", "2", "litellm 9.8.7 alone")),
    )
    shown = refresh(tmp_path, stays=entry(1, 3), changes=entry(1, 4))
    marks = [it[0] for it in shown.output.splitlines() if it[:2] in ("! ", "~ ", "? ")]
    assert marks == ["~", "?"]


def test_a_price_that_two_publishers_dispute_is_not_said_to_have_none(write: Any) -> None:
    routing = load(write(model("m", block("1", "2", "genai-prices 0.0.1"))))
    evidence = gather_evidence(routing, TODAY, None, None)
    [endpoint] = (it for model in routing.models.values() for it in model.endpoints)
    stated = {
        name: PublishedFacts(upstream="m", rates={"input": Decimal(rate), "output": Decimal(9)})
        for name, rate in (("genai-prices", 5), ("Hugging Face router", 6))
    }
    name = f"{endpoint.provider} {endpoint.upstream}"
    disputed = structs.replace(evidence, endpoints={name: stated})
    lines = list(render_verdicts(list(judge_file(routing, disputed)), disputed, {}))
    assert lines[0] == "! acme/m @ together: the publishers disagree, and none has the file's price"
    assert not [it for it in lines if "nobody publishes" in it]


def test_what_differs_of_an_endpoint_is_one_line(tmp_path: Path, write: Any) -> None:
    write(model("m", block("1", "2", "litellm 9.8.7 alone")))
    shown = refresh(tmp_path, m=entry(1, 2, max_output_tokens=50, supports_vision=True))
    [line] = [it for it in shown.output.splitlines() if it.startswith("? acme/m @ together")]
    assert line.count(";") == 1


def test_a_wheel_that_is_not_there_is_said_not_to_be(tmp_path: Path, write: Any) -> None:
    file = write(model("m", block("1", "2")))
    shown = CliRunner().invoke(
        main, ["catalog", "refresh", str(file), "--price-map", str(tmp_path / "no.whl")]
    )
    assert shown.exit_code == 2
    assert "does not exist" in shown.output


def test_without_a_wheel_the_kept_evidence_counts(tmp_path: Path, write: Any) -> None:
    write(model("m", block("1", "2")))
    assert refresh(tmp_path, "--write", m=entry(1, 2)).exit_code == 0
    kept = (str(tmp_path / "routing.yaml"), "--evidence", str(tmp_path / "seen.json"))
    shown = CliRunner().invoke(main, ["catalog", "refresh", *kept])
    assert (shown.exit_code, "litellm 9.8.7: 0 agreed by two, 1 stated by one" in shown.output) == (
        0,
        True,
    )


def test_a_file_with_errors_and_evidence_of_another_kind_are_refused(
    tmp_path: Path, write: Any
) -> None:
    write(model("m", block("-1", "2")))
    assert "must not be used" in refresh(tmp_path, m=entry(1, 2)).output
    write(model("m", block("1", "2")))
    (tmp_path / "seen.json").write_text("{}")
    assert "has no evidence" in refresh(tmp_path, m=entry(1, 2)).output


def test_only_the_endpoints_that_are_asked_for_are_judged(tmp_path: Path, write: Any) -> None:
    file = write(model("m", block("1.00", "2.00")), model("n", block("1.00", "2.00")))
    published = {"m": entry(1, 3), "n": entry(1, 3)}
    shown = refresh(tmp_path, "--model", "acme/n", "--provider", "together", "--write", **published)
    assert "1 endpoints compared" in shown.output
    changed = file.read_text(encoding="utf-8")
    assert changed.index("acme/m") < changed.index("output: 2.00") < changed.index("acme/n")
    assert "output: 3.00" in changed
    nobody = refresh(tmp_path, "--provider", "nobody", **published)
    assert nobody.exit_code == 2
    assert "the file has no endpoint for this model and provider" in nobody.output

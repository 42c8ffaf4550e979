"""`tollgate models add`: an entry with its published price, checked before it is kept."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.main import main
from tollgate.routing.file.load import load

PRICED = Path(__file__).parent / "priced.yaml"
TWIN = """\
  twin: { codec: openai_chat, transport: http_sse, base_url: https://api.openai.com/v1 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    copy = tmp_path / "routing.yaml"
    copy.write_bytes(PRICED.read_bytes())
    return copy


def add(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["models", "add", *map(str, arguments)])


def test_a_model_is_written_with_its_price_and_the_change_is_shown(file: Path) -> None:
    result = add(
        *("openai/gpt-4.1-mini", file, "--max-output", "32768", "--name", "GPT-4.1 Mini"),
        *("--input", "text", "--input", "image", "--supports", "tools"),
    )
    assert result.exit_code == 0, result.output
    model = load(file).models["openai/gpt-4.1-mini"]
    [endpoint] = model.endpoints
    assert (model.name, model.context, model.max_output) == ("GPT-4.1 Mini", 1_000_000, 32_768)
    assert (model.input, model.supports) == (("text", "image"), ("tools",))
    assert (endpoint.provider, endpoint.upstream) == ("openai", "gpt-4.1-mini")
    price = endpoint.price
    assert [str(rate) for rate in (price.input, price.output, price.cache_read)] == [
        "0.40",
        "1.60",
        "0.10",
    ]
    assert price.source == "genai-prices 0.2.3"
    shown = [line for line in result.output.splitlines() if line.startswith("+ ")]
    assert "+  openai/gpt-4.1-mini:" in shown
    assert not [line for line in result.output.splitlines() if line.startswith("- ")]
    assert "has no such rate: storage_searches_kcount" in result.output


def test_dates_hours_and_sizes_come_with_it(file: Path) -> None:
    assert add("openai/gpt-6-luna", file, "--max-output", "128000").exit_code == 0
    [endpoint] = load(file).models["openai/gpt-6-luna"].endpoints
    assert [it.when.prompt_tokens_over for it in endpoint.overrides] == [272_000]
    added = add("deepseek/v4", file, "--upstream", "deepseek-flash", "--max-output", "9")
    assert added.exit_code == 0
    [endpoint] = load(file).models["deepseek/v4"].endpoints
    assert [it.when.utc_window for it in endpoint.overrides] == ["01:00-04:00", "06:00-10:00"]


def test_a_model_that_several_providers_have_wants_a_choice(file: Path) -> None:
    shared = file.read_text().replace("  ours:", TWIN + "  ours:")
    file.write_text(shared)
    result = add("openai/gpt-4.1-nano", file, "--max-output", "9")
    assert result.exit_code == 1
    assert "choose one: openai (gpt-4.1-nano), twin (gpt-4.1-nano)" in result.output
    chosen = add("openai/gpt-4.1-nano", file, "--max-output", "9", "--provider", "twin")
    assert chosen.exit_code == 0
    assert load(file).models["openai/gpt-4.1-nano"].endpoints[0].provider == "twin"


def test_a_provider_whose_prices_nobody_publishes_is_told_apart(file: Path) -> None:
    unknown = TWIN.replace("twin", "acme").replace("api.openai.com", "api.acme.example")
    file.write_text(file.read_text().replace("  ours:", unknown + "  ours:"))
    result = add("acme/anvil-1", file, "--max-output", "9", "--provider", "acme")
    assert result.exit_code == 1
    assert "has no prices for acme: add acme/anvil-1 to the file by hand" in result.output


def test_a_model_that_is_there_is_refused_and_the_place_named(file: Path) -> None:
    before = file.read_bytes()
    result = add("openai/gpt-6.1-sol", file, "--max-output", "9")
    assert result.exit_code == 1
    assert "openai/gpt-6.1-sol exists already:" in result.output
    assert f"{file.as_posix()}:46:3" in result.output
    assert file.read_bytes() == before


def test_a_file_that_would_have_errors_is_left_as_it_was(file: Path) -> None:
    before = file.read_bytes()
    result = add("openai/gpt-4.1-nano", file, "--max-output", "1000001")
    assert result.exit_code == 1
    assert "R011" in result.output
    assert f"{file.as_posix()}:" in result.output
    assert ".part" not in result.output
    assert file.read_bytes() == before
    assert [it.name for it in file.parent.iterdir()] == ["routing.yaml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("acme/nothing", "--max-output", "9"), "has no price for acme/nothing at any provider"),
        (("openai/gpt-99-x", "--max-output", "9"), "state the provider's name for the model with"),
        (("openai/gpt-5.2",), "Missing option '--max-output'"),
        (("openai/gpt-5.2", "--max-output", "0"), "0 is not in the range"),
        (("openai/gpt-5.2", "--max-output", "9", "--provider", "opnai"), "deepseek, google"),
        (("openai/gpt-5.2", "--max-output", "9", "--supports", "magic"), "'magic' is not one of"),
        (("gpt-5.2", "--max-output", "9"), "write author/model"),
        (
            ("google/gemini-2.5-pro", "--max-output", "9"),
            "has no context for gemini-2.5-pro: use --context",
        ),
    ],
)
def test_bad_input_is_said_and_nothing_is_written(
    file: Path, arguments: tuple[str, ...], words: str
) -> None:
    before = file.read_bytes()
    result = add(arguments[0], file, *arguments[1:])
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert isinstance(result.exception, SystemExit)
    assert file.read_bytes() == before


def test_it_is_the_gateways_file_that_is_named_where_there_is_none() -> None:
    result = add("openai/gpt-5.2", "nowhere.yaml", "--max-output", "9")
    assert result.exit_code == 1
    assert "nowhere.yaml must not be used" in result.output

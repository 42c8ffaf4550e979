"""C65, C81: prices by the piece as both publishers have them, in the units of a routing file.

The entries of the map are those of litellm 1.109.1 (read 2026-11-22), under names of our own.
"""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.catalog.published import price_map
from tollgate.cli.catalog.price_map import read_price_map
from tollgate.cli.routing.published_prices import find_published_price
from tollgate.core.work.kinds import WorkKind
from tollgate.routing.schema import ProviderSection

TODAY = date(2026, 11, 22)
OPENAI = ProviderSection(
    codec="openai_chat", transport="http_sse", base_url="https://api.openai.com/v1"
)
GROQ = ProviderSection(
    codec="openai_chat", transport="http_sse", base_url="https://api.groq.com/openai/v1"
)
IMAGES = {
    "mode": "image_generation",
    "input_cost_per_token": 5e-06,
    "input_cost_per_image_token": 1e-05,
    "output_cost_per_image_token": 4e-05,
}


@pytest.mark.parametrize(
    ("kind", "entry", "rates"),
    [
        ("image", IMAGES, {"input": "5", "image_input": "10", "output": "40"}),
        (
            "image",
            {**IMAGES, "output_cost_per_token": 1e-05},
            {"input": "5", "image_input": "10", "output": "10", "image_output": "40"},
        ),
        (
            "image",
            {"mode": "image_generation", "output_cost_per_image": 0.08},
            {"input": "0", "image": "0.08"},
        ),
        (
            "image",
            {"mode": "image_generation", "input_cost_per_image": 0.02},
            {"input": "0", "image": "0.02"},
        ),
        (
            "speech",
            {"mode": "audio_speech", "input_cost_per_character": 1.5e-05},
            {"input": "0", "characters": "15"},
        ),
        (
            "speech",
            {
                "mode": "audio_speech",
                "input_cost_per_token": 6e-07,
                "output_cost_per_token": 1e-05,
                "output_cost_per_audio_token": 1.2e-05,
            },
            {"input": "0.6", "output": "12"},
        ),
        (
            "transcription",
            {"mode": "audio_transcription", "input_cost_per_second": 1.111e-05},
            {"input": "0", "audio_hour": "0.04"},
        ),
        (
            "transcription",
            {
                "mode": "audio_transcription",
                "input_cost_per_token": 2.5e-06,
                "input_cost_per_audio_token": 6e-06,
                "output_cost_per_token": 1e-05,
                "input_cost_per_second": 0.0001,
            },
            {"input": "2.5", "audio_input": "6", "output": "10"},
        ),
    ],
)
def test_c81_the_map_has_rates_by_the_piece(
    tmp_path: Path, kind: WorkKind, entry: dict[str, Any], rates: dict[str, str]
) -> None:
    path = price_map(tmp_path, m={"litellm_provider": "openai", **entry})
    found = read_price_map(path).find(OPENAI, "m", kind=kind)
    assert found is not None
    assert found.rates == {name: Decimal(rate) for name, rate in rates.items()}
    assert read_price_map(path).find(OPENAI, "m", kind="embedding") is None


@pytest.mark.parametrize(
    ("row", "upstream", "kind", "rates"),
    [
        (OPENAI, "gpt-image-1", "image", {"input": 5, "output": 40, "image_input": 10}),
        (OPENAI, "tts-1", "speech", {"input": 0, "characters": 15}),
        (OPENAI, "whisper-1", "transcription", {"input": 0, "audio_hour": Decimal("0.36")}),
        (GROQ, "whisper-large-v3", "transcription", {"input": 0, "audio_hour": Decimal("0.111")}),
        (
            OPENAI,
            "gpt-4o-transcribe",
            "transcription",
            {"input": Decimal("2.5"), "output": 10, "audio_input": 6},
        ),
    ],
)
def test_c81_genai_prices_has_rates_by_the_piece(
    row: ProviderSection, upstream: str, kind: WorkKind, rates: dict[str, Any]
) -> None:
    published = find_published_price(row, upstream, TODAY, kind=kind)
    stated = {
        name: rate for name, rate in published.price.price.__rich_repr__() if rate is not None
    }
    assert {name: rate for name, rate in stated.items() if rate or name == "input"} == rates


def test_c81_genai_prices_has_the_rates_of_decisions_without_those_of_answers() -> None:
    published = find_published_price(OPENAI, "gpt-6-luna", TODAY, kind="decision")
    [over] = published.overrides
    rates = {"input", "cache_read", "cache_write"}
    assert rates < published.price.model_fields_set
    assert (published.price.output, over.price.model_fields_set) == (0, rates)

"""The prices of routing.yaml against their named sources, which are on this machine: no network.

Compared are whole bills: genai-prices computes what each usage costs by its own arithmetic, at
hours, on days and for sizes of prompt at which a price may be another one.

Keeps C65.
"""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from genai_prices import data
from genai_prices.types import ModelInfo, ModelPrice
from genai_prices.types import Usage as PublishedUsage

from tests.cells import cells
from tollgate.core.records.generation import total_nano_usd
from tollgate.core.usage import Usage
from tollgate.routing.file.load import load
from tollgate.routing.price import bill
from tollgate.routing.schema import EndpointSection, ModelSection

ROUTING = load(Path(__file__).parents[3] / "routing.yaml")
SOURCE = "genai-prices"
PUBLISHERS = {
    "bedrock": "aws",
    "bedrock-mantle": "aws",
    "bedrock-mantle-anthropic": "aws",
    "bedrock-openai": "aws",
    "openai-responses": "openai",
    "xai": "x-ai",
}
# Where a price is not under the provider's own name, as a person decided: the publisher to ask.
# Hyperbolic's own pages show spans of prices, the router each.
ELSEWHERE = {"hyperbolic": "huggingface_hyperbolic"}
# genai-prices rounds what AWS's cards state, such as model-card-openai-gpt-6-sol.html (2026-11-27).
GPT_AT_BEDROCK = {"bedrock-mantle": 1_050_000, "bedrock-openai": 1_050_000}
# Whose peak is one of weekdays, which genai-prices cannot say: at the weekend it is never there.
OFF_PEAK_AT_WEEKENDS = {"deepseek"}
OFF_PEAK_HOUR = 12
DAYS_LATER = (0, 15, 60, 400)
HOURS = (0, 2, 5, 7, 12, 23)
PROMPTS = (4_000, 150_000, 201_000, 300_000)
# Each line is rounded to a nano-dollar by itself, half up.
ROUNDING_NANO_USD = 3


def _is_named(endpoint: EndpointSection) -> bool:
    """Whether the price is this publisher's; what it is disputed by stands behind a semicolon."""
    return (
        endpoint.provider in OFF_PEAK_AT_WEEKENDS
        or SOURCE in (endpoint.price.source.partition(";")[0])
    )


def found(endpoint: EndpointSection) -> ModelInfo | None:
    if not _is_named(endpoint):
        return None
    names = PUBLISHERS | ELSEWHERE
    publisher = names.get(endpoint.provider, endpoint.provider)
    provider = next((it for it in data.providers if it.id == publisher), None)
    return provider.find_model(endpoint.upstream) if provider else None


def published(endpoint: EndpointSection) -> ModelInfo:
    source = found(endpoint)
    assert source is not None
    return source


OFFERS = [
    pytest.param(model, endpoint, id=f"{slug} at {endpoint.provider}")
    for slug, model in ROUTING.models.items()
    for endpoint in model.endpoints
]
# test_evidence.py holds the others to the other publisher, or to the page that somebody read.
PUBLISHED = [offer for offer in OFFERS if found(offer.values[1])]


def transcribed(endpoint: EndpointSection, size: int) -> tuple[Usage, PublishedUsage]:
    """So many seconds of sound, or tokens of it, by whichever the endpoint charges."""
    if endpoint.price.audio_hour:
        heard = Usage(uncached_input_tokens=0, output_tokens=0, audio_seconds=size)
        return heard, PublishedUsage(audio_seconds=size, input_audio_seconds=size)
    by_tokens = Usage(uncached_input_tokens=size, audio_input_tokens=99, output_tokens=9)
    counted = {"input_tokens": size, "input_audio_tokens": 99, "output_tokens": 9}
    return by_tokens, PublishedUsage(**counted)


def drawn(prompt: int) -> tuple[Usage, PublishedUsage]:
    """Pictures read and made, with the thoughts of the model."""
    ours = Usage(
        uncached_input_tokens=prompt,
        image_input_tokens=999,
        output_tokens=1_300,
        image_output_tokens=1_234,
    )
    theirs = PublishedUsage(
        input_tokens=prompt,
        input_image_tokens=999,
        output_tokens=1_300,
        output_image_tokens=1_234,
    )
    return ours, theirs


def usages(
    model: ModelSection, endpoint: EndpointSection, prompt: int, known: ModelPrice
) -> list[tuple[Usage, PublishedUsage]]:
    """The same usage in our words and in theirs: every class for which both have a rate."""
    if model.kind == "image":
        return [drawn(prompt)]
    if model.kind == "speech":
        tokens = 0 if "input_mchars" in vars(known) else prompt
        ours = Usage(uncached_input_tokens=tokens, output_tokens=tokens, characters=prompt)
        theirs = {"input_tokens": tokens, "output_tokens": tokens, "input_characters": prompt}
        return [(ours, PublishedUsage(**theirs))]
    if model.kind == "transcription":
        return [transcribed(endpoint, prompt)]
    if model.kind != "chat":
        inputs = Usage(uncached_input_tokens=prompt, output_tokens=0)
        return [(inputs, PublishedUsage(input_tokens=prompt))]
    price = endpoint.price
    read = prompt // 2 if None not in (price.cache_read, known.cache_read_mtok) else 0
    hour = prompt // 8 if None not in (price.cache_write_1h, known.cache_write_1h_mtok) else 0
    five = prompt // 8 if None not in (price.cache_write, known.cache_write_mtok) else 0
    plain = (
        Usage(
            uncached_input_tokens=prompt - read - hour - five,
            cache_read_input_tokens=read,
            cache_write_5m_input_tokens=five,
            cache_write_1h_input_tokens=hour,
            output_tokens=1234,
            web_searches=3,
        ),
        PublishedUsage(
            input_tokens=prompt,
            cache_read_tokens=read,
            cache_write_tokens=five + hour,
            cache_write_1h_tokens=hour,
            output_tokens=1234,
            web_searches=3,
        ),
    )
    spoken = (
        Usage(uncached_input_tokens=prompt, audio_input_tokens=99, output_tokens=5),
        PublishedUsage(input_tokens=prompt, input_audio_tokens=99, output_tokens=5),
    )
    heard = (
        Usage(
            uncached_input_tokens=prompt - read,
            audio_input_tokens=99,
            cache_read_input_tokens=read,
            cache_read_audio_input_tokens=77,
            output_tokens=5,
        ),
        PublishedUsage(
            input_tokens=prompt,
            cache_read_tokens=read,
            input_audio_tokens=99 + 77,
            cache_audio_read_tokens=77,
            output_tokens=5,
        ),
    )
    return [plain] if price.audio_input is None else [plain, spoken, heard]


@cells(("model", "endpoint"), [it.values for it in PUBLISHED], ids=[it.id for it in PUBLISHED])
def test_c65_a_bill_is_what_the_source_of_its_price_computes(
    model: ModelSection, endpoint: EndpointSection
) -> None:
    source = published(endpoint)
    for days in DAYS_LATER:
        for hour in HOURS:
            day = endpoint.price.checked + timedelta(days=days)
            when = asked = datetime.combine(day, time(hour, 30), UTC)
            if endpoint.provider in OFF_PEAK_AT_WEEKENDS and when.weekday() > 4:
                asked = when.replace(hour=OFF_PEAK_HOUR)
            for prompt in PROMPTS:
                rates = endpoint.schedule.at(when.timestamp(), prompt)
                for ours, theirs in usages(model, endpoint, prompt, source.get_prices(asked)):
                    paid = total_nano_usd(bill(ours, rates))
                    due = source.get_prices(asked).calc_price(theirs)["total_price"]
                    assert abs(paid - due * Decimal(10**9)) <= ROUNDING_NANO_USD, (when, prompt)


@cells(("model", "endpoint"), [it.values for it in PUBLISHED], ids=[it.id for it in PUBLISHED])
def test_no_model_promises_more_context_than_its_source_knows(
    model: ModelSection, endpoint: EndpointSection
) -> None:
    known = GPT_AT_BEDROCK.get(endpoint.provider, published(endpoint).context_window)
    assert known is None or model.context <= known

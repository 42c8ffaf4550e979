"""A generated routing file of 300 models, to measure checking and loading.

    python bench/catalog_300.py > /tmp/routing.yaml

Every model has two endpoints; every tenth has weights, a dialect and overrides. 30 routes have
rules, weights and promises.
"""

import sys
from collections.abc import Iterator

_HEAD = """\
version: 1
providers:
  near:
    codec: openai_chat
    transport: http_sse
    base_url: https://near.example/v1
    key: { secret: tollgate/near, env: NEAR_API_KEY }
  far:
    codec: openai_chat
    transport: http_sse
    base_url: https://far.example/v1
    key: { env: FAR_API_KEY }
    dialect: { developer_role: true, refuses: [seed, logit_bias] }
"""


def make_routing(models: int = 300) -> str:
    """Return the text of a routing file with this number of models."""
    return "".join((_HEAD, "models:\n", *_models(models), "routes:\n", *_routes(models)))


def _models(models: int) -> Iterator[str]:
    for number in range(models):
        special = number % 10 == 0
        yield (
            f"  author-{number % 7}/model-{number}:\n"
            f"    name: Model {number}\n"
            f"    context: {8_000 + 1_000 * (number % 200)}\n"
            "    max_output: 8000\n"
            "    input: [text, image]\n"
            "    supports: [tools, structured_output]\n"
            "    endpoints:\n"
        )
        for provider, share in (("near", 60), ("far", 40)):
            yield (
                f"      - provider: {provider}\n"
                f"        upstream: model-{number}\n"
                "        price:\n"
                f"          input: {1 + number / 100:.2f}\n"
                f"          output: {4 + number / 50:.2f}\n"
                f"          cache_read: {0.1 + number / 1000:.3f}\n"
                f"          cache_write: {1.25 + number / 80:.4f}\n"
                "          source: made up for measuring\n"
                "          checked: 2026-11-21\n"
            )
            if special:
                yield (
                    f"        weight: {share}\n"
                    "        dialect: { output_limit_field: max_tokens, stream_usage: true }\n"
                    "        overrides:\n"
                    "          - when: { from: 2027-01-01 }\n"
                    f"            price: {{ input: {2 + number / 100:.2f} }}\n"
                    "          - when: { prompt_tokens_over: 200000 }\n"
                    f"            price: {{ output: {8 + number / 50:.2f} }}\n"
                )


def _routes(models: int) -> Iterator[str]:
    names = [f"author-{number % 7}/model-{number}" for number in range(models)]
    for number in range(0, models - 4, 10):
        first, second, third, fourth = names[number : number + 4]
        yield (
            f"  route-{number}:\n"
            "    description: Ten models further\n"
            "    rules:\n"
            "      - if: { prompt_tokens_over: 5000 }\n"
            f"        try: [{first}]\n"
            "      - try:\n"
            f"          - {{ {second}: 90, {third}: 10 }}\n"
            f"          - {fourth}\n"
            "    promise: { supports: [tools], context_min: 8000, output_price_max: 40 }\n"
        )


if __name__ == "__main__":
    sys.stdout.write(make_routing())

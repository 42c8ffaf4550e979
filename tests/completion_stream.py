"""Reads a stream of legacy completion chunks as a careful client does."""

from tests.chat_stream import Json, frames


def accumulated(stream: bytes) -> Json:
    """The whole reply that a stream amounts to."""
    whole: Json = {}
    choices: dict[int, Json] = {}
    for chunk in frames(stream):
        for more in chunk.pop("choices"):
            fresh: Json = {"text": "", "index": more["index"], "logprobs": None}
            choice = choices.setdefault(more["index"], fresh)
            choice["text"] += more.pop("text")
            _note(choice, more.pop("logprobs"))
            choice.update(more)
        whole.update(chunk)
    return whole | {"choices": [choice for _, choice in sorted(choices.items())]}


def _note(choice: Json, more: Json | None) -> None:
    if more is not None:
        known = choice["logprobs"] or {name: [] for name in more}
        choice["logprobs"] = {name: known[name] + listed for name, listed in more.items()}

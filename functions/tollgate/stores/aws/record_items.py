"""Every attribute of items of generations, their sums, publications and jobs.

`items.py` has the rest.
"""

from typing import Final

from tollgate.stores.aws.items import AnyItem


class ActivityItem(AnyItem):
    """Core table: the usage of a key, a model and a provider on a closed day."""

    COST: Final = "c"  # N: nano-dollars
    REQUESTS: Final = "n"  # N: number of generations
    FAILED: Final = "x"  # N: number of failed generations
    KEY_LABEL: Final = "kl"  # S: the key's name
    LABELS: Final = "lb"  # M of S: the key's labels
    CALLER_LABELS: Final = "cb"  # M of S: labels that callers stated (optional)
    USAGE: Final = {
        "ti": "uncached_input_tokens",
        "tr": "cache_read_input_tokens",
        "t5": "cache_write_5m_input_tokens",
        "t1": "cache_write_1h_input_tokens",
        "to": "output_tokens",
        "tz": "reasoning_tokens",
        "ai": "audio_input_tokens",
        "ao": "audio_output_tokens",
        "ar": "cache_read_audio_input_tokens",
        "im": "images",
        "ws": "web_searches",
        "su": "search_units",
        "ii": "image_input_tokens",
        "io": "image_output_tokens",
        "as": "audio_seconds",
        "ch": "characters",
        "tu": "text_units",
        "vs": "video_seconds",
    }
    """Fields of `Usage` by stored name (N); an attribute is absent if no provider reported the
    field.
    """


class ClosedDayItem(AnyItem):
    """Core table: a closed day, whose activity is complete."""

    COST: Final = "c"  # N: nano-dollars of all generations of the day
    REQUESTS: Final = "n"  # N: number of generations
    EXPORTED: Final = "xp"  # N: 1 once the day's export is written (optional)


class GenerationItem(AnyItem):
    """Generations table: a record in BLOB; the other attributes duplicate parts of it for
    filtering.
    """

    OUTCOME: Final = "st"  # S: an Outcome
    COST: Final = "c"  # N: nano-dollars
    KEY: Final = "k"  # S: id of the key
    MODEL: Final = "m"  # S: slug of the model that served (optional)
    PROVIDER: Final = "p"  # S: provider that served (optional)
    BLOB: Final = "z"  # B: the GenerationRecord as JSON, zlib-compressed


class PublicationItem(AnyItem):
    """Core table: the live catalog (one item), and each publication (one item each)."""

    LIVE: Final = "live"  # S: sha of the catalog
    REVISION: Final = "rev"  # N: number of publications so far
    CREATED: Final = "at"  # N: Unix second of the creation
    AUTHOR: Final = "by"  # S: the publisher's name
    PERCENT: Final = "pct"  # N: percentage of keys that the candidate serves
    COMMIT: Final = "git"  # S: commit of routing.yaml (optional)
    PREVIOUS: Final = "prev"  # S: sha that was live before (optional)
    CANDIDATE: Final = "cand"  # S: sha of the candidate (optional)
    TERMS: Final = "terms"  # S: the candidate's Terms as JSON (optional)
    WITHDRAWN: Final = "broke"  # S: the term that the withdrawn candidate broke (optional)


class CanaryLookItem(AnyItem):
    """Core table: the latest look at a candidate's traffic (one item)."""

    REVISION: Final = "rev"  # N: revision of the candidate's publication
    NUMBER: Final = "num"  # N: number of the look
    LOOK: Final = "look"  # S: the Look as JSON


class BillsItem(AnyItem):
    """Core table: the bills of many generations of one day, by the id of the first."""

    BLOB: Final = "z"  # B: a list of GenerationRecords as JSON, zlib-compressed


class BatchItem(AnyItem):
    """Core table: a job, such as a batch."""

    STATE: Final = "batch"  # B: the job's state as JSON
    REVISION: Final = "rev"  # N: Job.revision


class JobEventItem(AnyItem):
    """Core table: the end of a job, for webhooks."""

    EVENT: Final = "event"  # S: the WebhookEvent as JSON


class OpenBatchItem(AnyItem):
    """Core table: a job that has not ended; its sort key has the id."""

    WORKSPACE: Final = "ws"  # S: id of the workspace

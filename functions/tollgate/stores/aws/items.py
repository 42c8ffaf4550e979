"""Every attribute of every stored item: its short stored name, its type and its meaning.

Each kind of item has a class. The comment at each attribute states its DynamoDB type (`S` text, `N`
exact integer, `B` bytes, `L` list, `M` map) and its meaning. Stored names are short because
DynamoDB bills them together with the values. A stored name never changes, because existing items
have it.

`tables.py` builds the partition and sort key of each kind of item. `expressions.py` uses the stored
names literally; a test checks that each of them is defined here.
"""

from typing import Final


class AnyItem:
    """The attributes that any item may have."""

    PARTITION: Final = "pk"  # S: partition key
    SORT: Final = "sk"  # S: sort key
    DELETE_AT: Final = "ttl"  # N: Unix second after which DynamoDB deletes the item


class HoldingItem(AnyItem):
    """The attributes that wallet shards and key states share."""

    HOLDS: Final = "h"  # M: held nano-dollars (N) by hold id


class WalletItem(HoldingItem):
    """Ledger table: one shard of a workspace's money; available + held + spent = granted."""

    AVAILABLE: Final = "av"  # N: nano-dollars that are neither held nor spent
    SPENT: Final = "sp"  # N: nano-dollars, ever
    GRANTED: Final = "gr"  # N: nano-dollars granted by credit entries and moved from other shards
    LOCKED: Final = "lk"  # N: the workspace's LOCK; unless it is 0, no hold is written
    CROWDED: Final = "cr"  # N: 1 after too many holds or throttled writes, else absent


class KeyStateItem(HoldingItem):
    """Ledger table: the state of a key, member or team, which a hold's write checks and changes.

    The state also has buckets, which store the rest of each limit: `b_<period>` in nano-dollars and
    `t_<minute>` in tokens (N). `rules/periods.py` computes their names.
    """

    WORKSPACE: Final = "ws"  # S: id of the workspace
    ENABLED: Final = "on"  # N: 1 if the key may be used, else 0
    EXPIRES: Final = "ex"  # N: Unix second, in the year 9999 if never
    CONCURRENCY: Final = "cc"  # N: highest number of holds at a time
    DAY_LIMIT: Final = "ld"  # N: nano-dollars, UNLIMITED if there is no limit
    WEEK_LIMIT: Final = "lw"  # N: nano-dollars, likewise
    MONTH_LIMIT: Final = "lm"  # N: nano-dollars, likewise
    TOTAL_LIMIT: Final = "lt"  # N: nano-dollars, likewise
    MINUTE_TOKENS: Final = "tl"  # N: tokens per minute, UNLIMITED if there is no limit
    SPENT: Final = "us"  # N: nano-dollars, ever
    LAST_USED: Final = "lu"  # N: Unix second, absent before the first use
    REVISION: Final = "rv"  # N: revision of the settings that the state has, absent before any
    SLICES: Final = "sl"  # N: slices of the state, absent if it is one item
    OLD_LAST_USED: Final = "lo"  # N: LAST_USED of the secret that a rotation replaced
    # The rate of requests, limited by GCRA (generic cell rate algorithm) in microseconds.
    RATE_FULL: Final = "tat"  # N: Unix microsecond when the bucket is full again
    RATE_READY: Final = "ra"  # N: Unix microsecond when the next request may come
    RATE_INTERVAL: Final = "gi"  # N: microseconds that one request takes
    RATE_SLACK: Final = "gs"  # N: microseconds that a burst may borrow beyond one interval


class KeyRow(AnyItem):
    """The attributes that both items of a key in the core table share: pointer and secret."""

    KEY: Final = "kid"  # S: id of the key
    WORKSPACE: Final = "ws"  # S: id of the workspace
    ROLE: Final = "role"  # S: a KeyRole
    LABEL: Final = "label"  # S: name that people gave the key
    TIER: Final = "tier"  # S: tier of routing.yaml, absent without one
    MODELS: Final = "models"  # L of S: globs of models, absent if all models are allowed
    EXPIRES: Final = "ex"  # N: Unix second, absent if never
    LABELS: Final = "labels"  # M of S: labels that spending is grouped by, absent without any
    CONTENT_DAYS: Final = "cd"  # N: days for which content is stored, absent if it is not stored
    RESPONSE_DAYS: Final = "rd"  # N: days for which responses are stored, absent if unset
    TEAM: Final = "tm"  # S: id of the key's team, absent if the key names none
    MEMBER: Final = "mb"  # S: id of the member that the key belongs to, absent if none


class SecretItem(KeyRow):
    """Core table: the key data that authentication needs, by the hash of the secret."""

    ENABLED: Final = "on"  # N: 1 if the key may be used, else 0
    SHARDS: Final = "n"  # N: wallet shards of the workspace
    ADMISSION: Final = "adm"  # S: Admission of the workspace, absent if the catalog decides
    WORKSPACE_RESPONSE_DAYS: Final = "wrd"  # N: RESPONSE_DAYS of the workspace; 0 or absent if none
    GRACE_ENDS: Final = "gx"  # N: Unix second from which a replaced secret is refused, else absent


class SessionItem(AnyItem):
    """Core table: a session by the hash of its secret, with the same kind of key as a SecretItem."""

    KEY_HASH: Final = "kh"  # S: hash of the secret of the member's session key
    WORKSPACE: Final = "ws"  # S: id of the workspace
    MEMBER: Final = "mb"  # S: id of the member
    EXPIRES: Final = "ex"  # N: Unix second from which the session is refused


class LevelItem(AnyItem):
    """Core table: a team or a member, or its tombstone."""

    SETTINGS: Final = "cfg"  # S: the LevelSettings or MemberSettings as JSON
    CREATED: Final = "at"  # N: Unix second
    REVISION: Final = "rev"  # N: number of changes of the settings
    PENDING: Final = "want"  # N: 1 if the state does not have the settings yet, else absent
    SLICES: Final = "sl"  # N: slices of the state, absent if it is one item
    GONE: Final = "gone"  # N: Unix second of the deletion or removal, absent until then


class TeamItem(LevelItem):
    """Core table: a team."""

    JOINS: Final = "jo"  # N: number of keys and members that ever joined


class MemberItem(LevelItem):
    """Core table: a member."""

    SUBJECT: Final = "sj"  # S: issuer, a space, subject; absent before the first sign-in
    SESSION_KEY: Final = "skid"  # S: id of the key of the member's sessions, or absent


class SubjectItem(AnyItem):
    """Core table: the member that an identity signs in as, by the hash of its subject."""

    MEMBER: Final = "mb"  # S: id of the member


class KeyPointerItem(KeyRow):
    """Core table: a key in the list of its workspace, or the tombstone of a deleted key."""

    CREATED: Final = "at"  # N: Unix second
    PREFIX: Final = "pre"  # S: first characters of the secret
    HASH: Final = "hash"  # S: SHA-256 of the secret, hexadecimal
    LAST: Final = "last"  # S: last characters of the secret
    OLD_HASH: Final = "oldh"  # S: HASH of the replaced secret, absent before a rotation
    OLD_LAST: Final = "oldl"  # S: LAST of the replaced secret
    OLD_ENDS: Final = "oldx"  # N: Unix second until which the replaced secret works
    REVISION: Final = "rev"  # N: number of changes of the settings, absent before the first one
    PENDING: Final = "want"  # S: KeySettings (JSON) that the state does not have yet, or absent
    DELETING: Final = "going"  # N: Unix second from which the deletion is under way, or absent
    # Only a tombstone has the next four attributes.
    DELETED: Final = "gone"  # N: Unix second
    SPENT: Final = "us"  # N: nano-dollars, ever
    MONTH_SPENT: Final = "um"  # N: nano-dollars in the month of the deletion
    MONTH: Final = "month"  # S: bucket name of that month


class KeyNameItem(AnyItem):
    """Core table: the name of a key, unique within its workspace."""

    KEY: Final = "kid"  # S: id of the key


class WorkspaceItem(AnyItem):
    """Core table: a workspace."""

    SHARDS: Final = "n"  # N: wallet shards
    LOCK: Final = "lk"  # N: 0 open, 1 locked by an administrator, 2 paused by the budget
    CREATED: Final = "at"  # N: Unix second
    ADMISSION: Final = "adm"  # S: an Admission, absent if the catalog decides
    BUDGET: Final = "bud"  # N: nano-dollars in a UTC month, absent without a budget
    PAUSES: Final = "bp"  # N: 1 if the budget pauses the workspace, absent otherwise
    RESPONSE_DAYS: Final = "rd"  # N: days for which responses of its keys are stored, absent if not
    FILE_DAYS: Final = "fd"  # N: days after which its files expire, absent if they are kept
    CREDIT_LIMIT: Final = "cl"  # N: nano-dollars of its credit that are lent, absent if none
    COPIED: Final = "told"  # S: shards, admission and days that were copied to all secrets' rows


class CreditIdItem(AnyItem):
    """Core table: the id of a credit entry, which makes the entry unique."""

    PLACE: Final = "place"  # S: sort key of the entry, which orders entries by time


class CreditEntryItem(AnyItem):
    """Core table: one line of a workspace's credit ledger."""

    ID: Final = "id"  # S: the caller's id of the entry
    WORKSPACE: Final = "ws"  # S: id of the workspace
    KIND: Final = "kind"  # S: an EntryKind
    AMOUNT: Final = "amt"  # N: nano-dollars, negative if credit was taken back
    NOTE: Final = "note"  # S: the caller's reason
    CREATED: Final = "at"  # N: Unix second
    GENERATION: Final = "gen"  # S: id of the refunded generation, absent otherwise
    EXPIRES: Final = "ex"  # N: Unix second at which a grant expires, absent if it does not
    REFUNDED: Final = "use"  # S: the UsageGroup of a refund as JSON, absent otherwise


class CreditLotsItem(AnyItem):
    """Core table: the rest of a workspace's expiring grants, as of the item's last change."""

    REVISION: Final = "rev"  # N: number of changes so far
    SPENT: Final = "sp"  # N: nano-dollars that all shards had spent at that change
    LOTS: Final = "lots"  # S: the lots as JSON, in the order in which they are spent


class BudgetAlertItem(AnyItem):
    """Core table: a budget alert; the name of a channel is appended to each `_FOR` name."""

    EVENT: Final = "event"  # S: the alert as JSON
    SENT_FOR: Final = "at_"  # N: Unix second at which the channel accepted the alert
    LEASED_FOR: Final = "until_"  # N: Unix second at which a sender's lease ends


class PublicationItem(AnyItem):
    """Core table: the live catalog (one item), and each publication (one item each)."""

    LIVE: Final = "live"  # S: sha of the catalog
    REVISION: Final = "rev"  # N: number of publications so far
    CREATED: Final = "at"  # N: Unix second
    AUTHOR: Final = "by"  # S: the publisher's name
    PERCENT: Final = "pct"  # N: percentage of keys that the candidate serves
    COMMIT: Final = "git"  # S: commit of routing.yaml, absent if unknown
    PREVIOUS: Final = "prev"  # S: sha that was live before, absent at first
    CANDIDATE: Final = "cand"  # S: sha of the candidate, absent without one


class AuditItem(AnyItem):
    """Core table: an audit log entry, stored once for its workspace and once for its month."""

    ENTRY: Final = "entry"  # S: the AuditEntry as JSON


class WebhookItem(AnyItem):
    """Core table: a webhook, in one of its workspace's numbered slots."""

    WEBHOOK: Final = "hook"  # S: the Webhook as JSON
    REVISION: Final = "rev"  # N: number of changes of the webhook
    CURSOR: Final = "cur"  # N: Unix millisecond up to which audit log entries were read
    FAILING: Final = "fl"  # N: Unix second of the first failure since the last success, else absent
    DELIVERED: Final = "dl"  # N: Unix second of the last successful delivery, absent before


class DeliveryItem(AnyItem):
    """Core table: the delivery of an event to a webhook, pending or ended."""

    EVENT: Final = "event"  # S: the WebhookEvent as the JSON that is sent
    DELIVERY: Final = "way"  # S: the Delivery as JSON
    NEXT: Final = "nx"  # N: Unix second of the next attempt, absent once the delivery has ended


class CooldownItem(AnyItem):
    """Core table: the failures of an endpoint within one window."""

    SINCE: Final = "w"  # N: Unix second of the first failure
    COUNT: Final = "n"  # N: number of failures
    LAST: Final = "l"  # N: Unix second of the last failure


class SpeedItem(AnyItem):
    """Core table: sums of an endpoint's response times, in the current and the previous window."""

    SINCE: Final = "w"  # N: Unix second at which the current window began
    ANSWERS: Final = "n"  # N: number of answers in the window
    LATENCY: Final = "f"  # N: sum of milliseconds to first token
    TOKENS: Final = "t"  # N: sum of output tokens, as far as providers reported them
    DURATION: Final = "d"  # N: sum of milliseconds of the answers with reported tokens
    BEFORE: Final = "pw"  # N: SINCE of the window before, absent in the first window
    BEFORE_ANSWERS: Final = "pn"  # N
    BEFORE_LATENCY: Final = "pf"  # N
    BEFORE_TOKENS: Final = "pt"  # N
    BEFORE_DURATION: Final = "pd"  # N


class AnswerClaimItem(AnyItem):
    """Core table: the request that produces, or produced, the answer to an Idempotency-Key."""

    REQUEST: Final = "gid"  # S: id of the request
    BODY_HASH: Final = "bh"  # S: hash of the request's body
    STATE: Final = "st"  # S: `running` or `done`
    CREATED: Final = "at"  # N: Unix second


class LoginCodeItem(AnyItem):
    """Core table: a step of a sign-in, by the hash of the code that continues it."""

    VALUE: Final = "v"  # B: a struct of sign_in/tickets.py as JSON
    EXPIRES: Final = "ex"  # N: Unix second from which the code is treated as missing


class LoginCountItem(AnyItem):
    """Core table: number of calls from one network address in one window."""

    COUNT: Final = "n"  # N: number of calls


class FileItem(AnyItem):
    """Core table: an uploaded file, whose content is an object."""

    KEY: Final = "kid"  # S: id of the key that uploaded it
    MEMBER: Final = "mb"  # S: id of the key's member at the upload, absent if none
    FILENAME: Final = "fn"  # S: file name as callers see it
    PURPOSE: Final = "pu"  # S: a FilePurpose
    MEDIA_TYPE: Final = "mt"  # S: media type, detected from the content
    SIZE: Final = "b"  # N: bytes
    CREATED: Final = "at"  # N: Unix second
    EXPIRES: Final = "ex"  # N: Unix second from which the file is not found, absent if kept
    DELETING: Final = "going"  # N: Unix second at which a caller's deletion began, else absent
    AWAITED: Final = "aw"  # N: Unix second until which the upload may arrive, absent once it has
    PARTS: Final = "h"  # M: bytes (N) of its upload's parts by id, absent if not in parts
    SENT: Final = "sb"  # N: sum of the bytes of all PARTS
    JOINED: Final = "jn"  # S: hash of the ids of the parts that are, or were, joined


class FileUsageItem(AnyItem):
    """Core table: number and size of the stored files of a workspace, or of one of its keys."""

    FILES: Final = "n"  # N: number of files, including uploads in progress
    SIZE: Final = "b"  # N: sum of their bytes
    UPLOADS: Final = "h"  # M: bytes (N) by id of counted files whose item may not exist yet


class ActivityItem(AnyItem):
    """Core table: the usage of a key, a model and a provider on a closed day."""

    COST: Final = "c"  # N: nano-dollars
    REQUESTS: Final = "n"  # N: number of generations
    FAILED: Final = "x"  # N: number of failed generations
    KEY_LABEL: Final = "kl"  # S: the key's name
    LABELS: Final = "lb"  # M of S: the key's labels
    CALLER_LABELS: Final = "cb"  # M of S: labels that the callers stated, absent if none
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
    }
    """Fields of `Usage` by stored name (N); an attribute is absent if no provider reported it."""


class ClosedDayItem(AnyItem):
    """Core table: a closed day, whose activity is complete."""

    COST: Final = "c"  # N: nano-dollars of all generations of the day
    REQUESTS: Final = "n"  # N: number of generations
    EXPORTED: Final = "xp"  # N: 1 once the day's export is written, else absent


class GenerationItem(AnyItem):
    """Generations table: a record; all attributes except BLOB repeat parts of it for filters."""

    OUTCOME: Final = "st"  # S: an Outcome
    COST: Final = "c"  # N: nano-dollars
    KEY: Final = "k"  # S: id of the key
    MODEL: Final = "m"  # S: slug of the model that served, absent if none did
    PROVIDER: Final = "p"  # S: provider that served, absent if none did
    BLOB: Final = "z"  # B: the GenerationRecord as JSON, zlib-compressed

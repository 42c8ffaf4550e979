"""Every attribute of every stored item: its short stored name, its type and its meaning.

A class for each kind of item, and beside each attribute its DynamoDB type (`S` text, `N` exact
integer, `B` bytes, `L` list, `M` map). Stored names are short because DynamoDB bills them with the
values. A stored name never changes: items that were written before keep it.

`tables.py` makes the partition and sort key of each kind of item. `expressions.py` writes the names
out, so that an expression reads as DynamoDB gets it; a test looks each of them up here.
"""

from typing import Final


class AnyItem:
    """The attributes that items of all kinds may have."""

    PARTITION: Final = "pk"  # S: partition key
    SORT: Final = "sk"  # S: sort key
    DELETE_AT: Final = "ttl"  # N: Unix second after which DynamoDB deletes the item


class HoldingItem(AnyItem):
    """The attributes that wallet shards and key states share."""

    HOLDS: Final = "h"  # M: nano-dollars (N) by the id of the hold


class WalletItem(HoldingItem):
    """Ledger table: one shard of a workspace's money; available + held + spent = granted."""

    AVAILABLE: Final = "av"  # N: nano-dollars, neither held nor spent
    SPENT: Final = "sp"  # N: nano-dollars, ever
    GRANTED: Final = "gr"  # N: nano-dollars, credit entries and moves between shards
    LOCKED: Final = "lk"  # N: LOCK of the workspace; nothing may be held unless it is 0
    CROWDED: Final = "cr"  # N: 1 after too many holds or throttled writes, absent otherwise


class KeyStateItem(HoldingItem):
    """Ledger table: what the write of a hold checks of a key, a member or a team, and changes.

    Beside these, buckets with names of their own count what is left of a limit: `b_<period>` in
    nano-dollars and `t_<minute>` in tokens (N). `rules/periods.py` makes the names.
    """

    WORKSPACE: Final = "ws"  # S: id of the workspace
    ENABLED: Final = "on"  # N: 1 if the key may be used, else 0
    EXPIRES: Final = "ex"  # N: Unix second, the year 9999 if never
    CONCURRENCY: Final = "cc"  # N: holds at a time
    DAY_LIMIT: Final = "ld"  # N: nano-dollars, UNLIMITED if there is no limit
    WEEK_LIMIT: Final = "lw"  # N: nano-dollars, likewise
    MONTH_LIMIT: Final = "lm"  # N: nano-dollars, likewise
    TOTAL_LIMIT: Final = "lt"  # N: nano-dollars, likewise
    MINUTE_TOKENS: Final = "tl"  # N: tokens per minute, UNLIMITED if there is no limit
    SPENT: Final = "us"  # N: nano-dollars, ever
    LAST_USED: Final = "lu"  # N: Unix second, absent before the first use
    REVISION: Final = "rv"  # N: REVISION of the key's pointer that the settings are of, or absent
    SLICES: Final = "sl"  # N: items that share the state, absent for one
    OLD_LAST_USED: Final = "lo"  # N: the same for the secret from before a rotation
    # The rate of requests, as GCRA in microseconds.
    RATE_FULL: Final = "tat"  # N: Unix microsecond when the bucket is full again
    RATE_READY: Final = "ra"  # N: Unix microsecond when the next request may come
    RATE_INTERVAL: Final = "gi"  # N: microseconds that one request takes
    RATE_SLACK: Final = "gs"  # N: microseconds that a burst may borrow beyond one interval


class KeyRow(AnyItem):
    """The attributes that both rows of a key in the core table share."""

    KEY: Final = "kid"  # S: id of the key
    WORKSPACE: Final = "ws"  # S: id of the workspace
    ROLE: Final = "role"  # S: a KeyRole
    LABEL: Final = "label"  # S: name that people gave the key
    TIER: Final = "tier"  # S: tier of routing.yaml, absent without one
    MODELS: Final = "models"  # L of S: globs of models, absent if all are allowed
    EXPIRES: Final = "ex"  # N: Unix second, absent if never
    LABELS: Final = "labels"  # M of S: labels that spending is grouped by, absent without any
    CONTENT_DAYS: Final = "cd"  # N: days that content is kept, absent if it is not
    RESPONSE_DAYS: Final = "rd"  # N: days that responses are stored, absent if the key says none
    TEAM: Final = "tm"  # S: id of the key's team, absent without one of its own
    MEMBER: Final = "mb"  # S: id of the member that the key belongs to, absent without one


class SecretItem(KeyRow):
    """Core table: the key that the hash of a secret belongs to; all that authentication reads."""

    ENABLED: Final = "on"  # N: 1 if the key may be used, else 0
    SHARDS: Final = "n"  # N: wallet shards of the workspace
    ADMISSION: Final = "adm"  # S: Admission of the workspace, absent if the catalog decides
    WORKSPACE_RESPONSE_DAYS: Final = "wrd"  # N: RESPONSE_DAYS of the workspace; 0 or absent is none
    GRACE_ENDS: Final = "gx"  # N: Unix second, only after the key got another secret


class SessionItem(AnyItem):
    """Core table: the hash of a session's secret, in the place of a SecretItem."""

    KEY_HASH: Final = "kh"  # S: hash of the secret of the member's session key
    WORKSPACE: Final = "ws"  # S: id of the workspace
    MEMBER: Final = "mb"  # S: id of the member
    EXPIRES: Final = "ex"  # N: Unix second from which the session is refused


class LevelItem(AnyItem):
    """Core table: a team or a member, and the tombstone of one."""

    SETTINGS: Final = "cfg"  # S: the LevelSettings or MemberSettings as JSON
    CREATED: Final = "at"  # N: Unix second
    REVISION: Final = "rev"  # N: changes of the settings
    PENDING: Final = "want"  # N: 1 if the state still has to get the settings, absent otherwise
    SLICES: Final = "sl"  # N: items that share the state, absent for one
    GONE: Final = "gone"  # N: Unix second of the deletion or removal, absent before


class TeamItem(LevelItem):
    """Core table: a team."""

    JOINS: Final = "jo"  # N: keys and members that ever joined


class MemberItem(LevelItem):
    """Core table: a member."""

    SUBJECT: Final = "sj"  # S: issuer, a space, subject; absent before the first sign-in
    SESSION_KEY: Final = "skid"  # S: id of the key of the member's sessions, absent before


class SubjectItem(AnyItem):
    """Core table: the member as whom an identity signs in, by the hash of its subject."""

    MEMBER: Final = "mb"  # S: id of the member


class KeyPointerItem(KeyRow):
    """Core table: a key as its workspace lists it, and the tombstone of a deleted one."""

    CREATED: Final = "at"  # N: Unix second
    PREFIX: Final = "pre"  # S: what the secret begins with
    HASH: Final = "hash"  # S: SHA-256 of the secret, hexadecimal
    LAST: Final = "last"  # S: last characters of the secret
    OLD_HASH: Final = "oldh"  # S: HASH of the secret before, absent before a rotation
    OLD_LAST: Final = "oldl"  # S: LAST of the secret before
    OLD_ENDS: Final = "oldx"  # N: Unix second until which the secret before works
    REVISION: Final = "rev"  # N: changes of the settings, absent before the first one
    PENDING: Final = "want"  # S: KeySettings as JSON that the state still has to get, or absent
    DELETING: Final = "going"  # N: Unix second from which the key is refused for good, or absent
    # Only a tombstone has the four below.
    DELETED: Final = "gone"  # N: Unix second
    SPENT: Final = "us"  # N: nano-dollars, ever
    MONTH_SPENT: Final = "um"  # N: nano-dollars in the month of the deletion
    MONTH: Final = "month"  # S: bucket name of that month


class KeyNameItem(AnyItem):
    """Core table: the name of a key, which no other key of its workspace can have."""

    KEY: Final = "kid"  # S: id of the key


class WorkspaceItem(AnyItem):
    """Core table: a workspace."""

    SHARDS: Final = "n"  # N: wallet shards
    LOCK: Final = "lk"  # N: 0 open, 1 locked by an administrator, 2 paused by the budget
    CREATED: Final = "at"  # N: Unix second
    ADMISSION: Final = "adm"  # S: an Admission, absent if the catalog decides
    BUDGET: Final = "bud"  # N: nano-dollars in a UTC month, absent without a budget
    PAUSES: Final = "bp"  # N: 1 if the budget pauses the workspace, absent otherwise
    RESPONSE_DAYS: Final = "rd"  # N: days that responses of its keys are stored, absent if not
    FILE_DAYS: Final = "fd"  # N: days after which its files expire, absent if they are kept
    CREDIT_LIMIT: Final = "cl"  # N: nano-dollars of its credit that are lent, absent if none
    COPIED: Final = "told"  # S: shards, admission and days that all rows of secrets have


class CreditIdItem(AnyItem):
    """Core table: the id of a credit entry, which makes the entry single."""

    PLACE: Final = "place"  # S: id of the entry's place in the order of time


class CreditEntryItem(AnyItem):
    """Core table: one line of a workspace's credit ledger."""

    ID: Final = "id"  # S: the caller's id of the entry
    WORKSPACE: Final = "ws"  # S: id of the workspace
    KIND: Final = "kind"  # S: an EntryKind
    AMOUNT: Final = "amt"  # N: nano-dollars, negative if taken back
    NOTE: Final = "note"  # S: the caller's reason
    CREATED: Final = "at"  # N: Unix second
    GENERATION: Final = "gen"  # S: id of the refunded generation, absent otherwise
    EXPIRES: Final = "ex"  # N: Unix second at which a grant expires, absent if it does not
    REFUNDED: Final = "use"  # S: the UsageGroup of a refund as JSON, absent otherwise


class CreditLotsItem(AnyItem):
    """Core table: what is left of a workspace's grants that expire, at their last change."""

    REVISION: Final = "rev"  # N: changes so far
    SPENT: Final = "sp"  # N: nano-dollars that all shards had spent by then
    LOTS: Final = "lots"  # S: the lots as JSON, in the order in which they are spent


class BudgetAlertItem(AnyItem):
    """Core table: an alert of a workspace's budget; a `_FOR` name goes before a channel's name."""

    EVENT: Final = "event"  # S: the alert as JSON
    SENT_FOR: Final = "at_"  # N: Unix second at which the channel took it
    LEASED_FOR: Final = "until_"  # N: Unix second until which one process tries to send it


class PublicationItem(AnyItem):
    """Core table: the catalog that is live (one item), and each publication (a row each)."""

    LIVE: Final = "live"  # S: sha of the catalog
    REVISION: Final = "rev"  # N: publications so far
    CREATED: Final = "at"  # N: Unix second
    AUTHOR: Final = "by"  # S: the publisher's name
    PERCENT: Final = "pct"  # N: percent of keys that the candidate serves
    COMMIT: Final = "git"  # S: commit of routing.yaml, absent if unknown
    PREVIOUS: Final = "prev"  # S: sha that was live before, absent at first
    CANDIDATE: Final = "cand"  # S: sha of the candidate, absent without one


class AuditItem(AnyItem):
    """Core table: an entry of the audit log, in a row of its workspace and one of its month."""

    ENTRY: Final = "entry"  # S: the AuditEntry as JSON


class WebhookItem(AnyItem):
    """Core table: a webhook of a workspace, in one of its places."""

    WEBHOOK: Final = "hook"  # S: the Webhook as JSON
    REVISION: Final = "rev"  # N: changes of it
    CURSOR: Final = "cur"  # N: Unix millisecond up to which entries of the audit log are taken
    FAILING: Final = "fl"  # N: Unix second since which it takes no event, absent if it took one
    DELIVERED: Final = "dl"  # N: Unix second at which it last took one, absent before


class DeliveryItem(AnyItem):
    """Core table: an event on its way to a webhook, or one that has ended."""

    EVENT: Final = "event"  # S: the WebhookEvent as JSON, as it is sent
    DELIVERY: Final = "way"  # S: the Delivery as JSON
    NEXT: Final = "nx"  # N: Unix second of the next attempt, absent once it has ended


class CooldownItem(AnyItem):
    """Core table: the failures of an endpoint within one window."""

    SINCE: Final = "w"  # N: Unix second of the first failure
    COUNT: Final = "n"  # N: failures
    LAST: Final = "l"  # N: Unix second of the last failure


class SpeedItem(AnyItem):
    """Core table: the time that an endpoint's answers took, in the last window and before it."""

    SINCE: Final = "w"  # N: Unix second at which the last window began
    ANSWERS: Final = "n"  # N: answers of the window
    LATENCY: Final = "f"  # N: milliseconds to their first tokens, added up
    TOKENS: Final = "t"  # N: their output tokens, as far as providers counted them
    DURATION: Final = "d"  # N: milliseconds of the answers with counted tokens
    BEFORE: Final = "pw"  # N: the same of the window before, absent with the first one
    BEFORE_ANSWERS: Final = "pn"  # N
    BEFORE_LATENCY: Final = "pf"  # N
    BEFORE_TOKENS: Final = "pt"  # N
    BEFORE_DURATION: Final = "pd"  # N


class AnswerClaimItem(AnyItem):
    """Core table: the request that makes, or made, the answer to an Idempotency-Key."""

    REQUEST: Final = "gid"  # S: id of the request
    BODY_HASH: Final = "bh"  # S: hash of its body
    STATE: Final = "st"  # S: `running` or `done`
    CREATED: Final = "at"  # N: Unix second


class LoginCodeItem(AnyItem):
    """Core table: a step of a sign-in, by the hash of the code that leads to it."""

    VALUE: Final = "v"  # B: a struct of login/tickets.py as JSON
    EXPIRES: Final = "ex"  # N: Unix second from which it is not found


class LoginCountItem(AnyItem):
    """Core table: calls of one network address in one window."""

    COUNT: Final = "n"  # N: calls


class FileItem(AnyItem):
    """Core table: an uploaded file, whose content is an object."""

    KEY: Final = "kid"  # S: id of the key that uploaded it
    MEMBER: Final = "mb"  # S: id of the member that the key had, absent for a key without one
    FILENAME: Final = "fn"  # S: as it is shown
    PURPOSE: Final = "pu"  # S: a FilePurpose
    MEDIA_TYPE: Final = "mt"  # S: media type, by its content
    SIZE: Final = "b"  # N: bytes
    CREATED: Final = "at"  # N: Unix second
    EXPIRES: Final = "ex"  # N: Unix second from which it is not found, absent if it is kept
    DELETING: Final = "going"  # N: Unix second from which a caller's deletion is under way
    AWAITED: Final = "aw"  # N: Unix second until which its content may arrive, absent once it has
    PARTS: Final = "h"  # M: bytes (N) of the parts of its upload by id, absent otherwise
    SENT: Final = "sb"  # N: bytes of all PARTS
    JOINED: Final = "jn"  # S: hash of the ids of the parts that make, or made, the content


class FileUsageItem(AnyItem):
    """Core table: the files that a workspace, or one of its keys, keeps."""

    FILES: Final = "n"  # N: files, those that are being uploaded included
    SIZE: Final = "b"  # N: their bytes
    UPLOADS: Final = "h"  # M: bytes (N) of files whose item may be missing yet, by id


class ActivityItem(AnyItem):
    """Core table: the use of a key, a model and a provider on a closed day."""

    COST: Final = "c"  # N: nano-dollars
    REQUESTS: Final = "n"  # N: generations
    FAILED: Final = "x"  # N: generations that failed
    KEY_LABEL: Final = "kl"  # S: the key's name
    LABELS: Final = "lb"  # M of S: the key's labels
    CALLER_LABELS: Final = "cb"  # M of S: the callers' labels, absent without any
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
    """Each field of `Usage` (N), absent where no provider reported it."""


class ClosedDayItem(AnyItem):
    """Core table: a day whose activity is complete."""

    COST: Final = "c"  # N: nano-dollars of all its generations
    REQUESTS: Final = "n"  # N: generations
    EXPORTED: Final = "xp"  # N: 1 once its export is written, absent before


class GenerationItem(AnyItem):
    """Generations table: a record; the attributes beside BLOB only repeat parts of it."""

    OUTCOME: Final = "st"  # S: an Outcome
    COST: Final = "c"  # N: nano-dollars
    KEY: Final = "k"  # S: id of the key
    MODEL: Final = "m"  # S: slug, absent if nothing served
    PROVIDER: Final = "p"  # S: provider, absent if nothing served
    BLOB: Final = "z"  # B: the GenerationRecord as JSON, zlib-compressed

"""Every attribute of every stored item: its short stored name, its type and its meaning.

Each kind of item has a class. A comment or docstring states the DynamoDB type of each attribute
(`S` text, `N` exact integer, `B` bytes, `L` list, `M` map) and the meaning. Items may lack optional
attributes. Stored names are short because DynamoDB bills them; they never change.
`record_items.py` has the items of generations, of their sums and of jobs. A test compares the names
with the expressions, which have them literally.
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
    SPENT: Final = "sp"  # N: nano-dollars spent in total
    GRANTED: Final = "gr"  # N: nano-dollars granted by credit entries and moved from other shards
    LOCKED: Final = "lk"  # N: the workspace's LOCK; holds are written only if it is 0
    CROWDED: Final = "cr"  # N: 1 once the shard had too many holds or throttled writes (optional)


class KeyStateItem(HoldingItem):
    """Ledger table: the state of a key, member or team, which a hold's write checks and changes.

    Also `b_<period>` (nano-dollars), `t_<minute>` (tokens), and `c_<quota>` with `q_<hold>` (M).
    """

    WORKSPACE: Final = "ws"  # S: id of the workspace
    ENABLED: Final = "on"  # N: 1 if the key is enabled, else 0
    EXPIRES: Final = "ex"  # N: Unix second; in the year 9999 for a key that never expires
    CONCURRENCY: Final = "cc"  # N: highest number of holds at a time
    DAY_LIMIT: Final = "ld"  # N: nano-dollars, or UNLIMITED
    WEEK_LIMIT: Final = "lw"  # N: nano-dollars, or UNLIMITED
    MONTH_LIMIT: Final = "lm"  # N: nano-dollars, or UNLIMITED
    TOTAL_LIMIT: Final = "lt"  # N: nano-dollars, or UNLIMITED
    MINUTE_TOKENS: Final = "tl"  # N: tokens per minute, or UNLIMITED
    SPENT: Final = "us"  # N: nano-dollars spent in total
    LAST_USED: Final = "lu"  # N: Unix second of the last use (optional)
    ADDRESS: Final = "ad"  # S: network address of a recent use, if KEEP_ADDRESS (optional)
    ADDRESS_SEEN: Final = "adt"  # N: Unix second of that use (optional)
    REVISION: Final = "rv"  # N: revision of the settings in the state (optional)
    SLICES: Final = "sl"  # N: number of slices of the state (optional, default 1)
    OLD_LAST_USED: Final = "lo"  # N: LAST_USED of the secret that a rotation replaced
    # The rate of requests, limited by GCRA (generic cell rate algorithm) in microseconds.
    RATE_FULL: Final = "tat"  # N: Unix microsecond when the bucket is full again
    RATE_READY: Final = "ra"  # N: Unix microsecond when the next request may come
    RATE_INTERVAL: Final = "gi"  # N: microseconds that one request takes
    RATE_SLACK: Final = "gs"  # N: microseconds that a burst may borrow beyond one interval


class SessionStateItem(HoldingItem):
    """Ledger table: what the requests of a session have used, for keys that limit sessions."""

    WORKSPACE: Final = "ws"  # S: id of the workspace
    COMMITTED: Final = "cm"  # N: nano-dollars spent and held
    REQUESTS: Final = "n"  # N: admitted requests


class KeyRow(AnyItem):
    """Attributes common to the two core-table items of a key: the pointer and the secret."""

    KEY: Final = "kid"  # S: id of the key
    WORKSPACE: Final = "ws"  # S: id of the workspace
    ROLE: Final = "role"  # S: a KeyRole
    LABEL: Final = "label"  # S: name of the key
    TIER: Final = "tier"  # S: tier of routing.yaml (optional)
    MODELS: Final = "models"  # L of S: globs of allowed models (optional, default all)
    EXPIRES: Final = "ex"  # N: Unix second of the expiry (optional)
    LABELS: Final = "labels"  # M of S: labels by which spending is grouped (optional)
    CONTENT_DAYS: Final = "cd"  # N: days for which content is stored (optional)
    RESPONSE_DAYS: Final = "rd"  # N: days for which responses are stored (optional)
    TEAM: Final = "tm"  # S: id of the key's team (optional)
    MEMBER: Final = "mb"  # S: id of the member that the key belongs to (optional)
    ALLOWED_IPS: Final = "ips"  # S: networks from which the key may be used (optional)
    PROMPT_POLICY: Final = "pp"  # S: where prompts may go (optional)
    GUARDRAILS: Final = "gu"  # S: names of guardrails, separated by commas (optional)
    USAGE_ON: Final = "uo"  # S: a UsageOn (optional)
    MAX_COST: Final = "mc"  # N: highest cost of one request, in nano-dollars (optional)
    SESSION_BUDGET: Final = "sb"  # N: nano-dollars that one session may cost (optional)
    SESSION_REQUESTS: Final = "sr"  # N: requests of one session (optional)
    ANSWER_CACHE: Final = "ac"  # S: an AnswerSharing (optional)
    QUOTAS: Final = "qu"  # S: limits per window, as `parse_quotas` reads them (optional)
    KEEP_ADDRESS: Final = "ka"  # S: a KeptAddress (optional)
    WARN_AT: Final = "wa"  # N: percent of a spending limit from which replies warn (optional)


class SecretItem(KeyRow):
    """Core table: data of a key that authentication needs, by the hash of a secret."""

    ENABLED: Final = "on"  # N: 1 if the key is enabled, else 0
    SHARDS: Final = "n"  # N: wallet shards of the workspace
    ADMISSION: Final = "adm"  # S: the workspace's Admission (optional, default: the catalog's)
    WORKSPACE_RESPONSE_DAYS: Final = "wrd"  # N: the workspace's RESPONSE_DAYS (optional), or 0
    WORKSPACE_IPS: Final = "wip"  # S: the workspace's ALLOWED_IPS (optional), or empty
    WORKSPACE_KEY_DAYS: Final = "wkd"  # N: the workspace's KEY_DAYS (optional), or 0
    WORKSPACE_USAGE_ON: Final = "wuo"  # S: the workspace's USAGE_ON (optional), or empty
    MADE: Final = "md"  # N: Unix second of the secret's creation (optional, default: the key's)
    GRACE_ENDS: Final = "gx"  # N: Unix second from which a replaced secret is refused (optional)


class SessionItem(AnyItem):
    """Core table: a session by the hash of its secret, keyed in the same way as a SecretItem."""

    KEY_HASH: Final = "kh"  # S: hash of the secret of the member's session key
    WORKSPACE: Final = "ws"  # S: id of the workspace
    MEMBER: Final = "mb"  # S: id of the member
    EXPIRES: Final = "ex"  # N: Unix second from which the session is refused
    SIGN_IN: Final = "si"  # S: id of the SignInItem, without which the secret is refused (optional)
    ROUND: Final = "rd"  # N: MemberItem.ROUND when the sign-in began (optional, default 0)
    OPENER: Final = "op"  # S: hash of the secret that opened this one, of a playground (optional)


class SignInItem(AnyItem):
    """Core table: a session of a member, to which the SessionItems of its renewals belong."""

    ROUND: Final = "rd"  # N: MemberItem.ROUND when the session was opened
    OPENED: Final = "at"  # N: Unix second of the sign-in
    RENEWED: Final = "rn"  # N: Unix second at which the latest secret was issued
    EXPIRES: Final = "ex"  # N: Unix second at which the session ends unless it is renewed
    RENEWABLE: Final = "rf"  # N: 1 if the program has a refresh token (optional)
    ORIGIN: Final = "oa"  # S: network address that received the latest secret, or empty


class LevelItem(AnyItem):
    """Core table: a team or a member, or its tombstone."""

    SETTINGS: Final = "cfg"  # S: the LevelSettings or MemberSettings as JSON
    CREATED: Final = "at"  # N: Unix second of the creation
    REVISION: Final = "rev"  # N: number of changes of the settings
    PENDING: Final = "want"  # N: 1 if the state does not have the settings yet (optional)
    SLICES: Final = "sl"  # N: number of slices of the state (optional, default 1)
    GONE: Final = "gone"  # N: Unix second of the deletion or removal (optional)


class TeamItem(LevelItem):
    """Core table: a team."""

    JOINS: Final = "jo"  # N: number of keys and members that have ever joined


class MemberItem(LevelItem):
    """Core table: a member."""

    SUBJECT: Final = "sj"  # S: issuer, a space and subject (optional)
    SESSION_KEY: Final = "skid"  # S: id of the key of the member's sessions (optional)
    ROUND: Final = "rd"  # N: how often all sessions were ended (optional, default 0)


class SubjectItem(AnyItem):
    """Core table: the member that an identity signs in as, by the hash of its subject."""

    MEMBER: Final = "mb"  # S: id of the member


class KeyPointerItem(KeyRow):
    """Core table: a key in the list of its workspace, or the tombstone of a deleted key."""

    CREATED: Final = "at"  # N: Unix second of the creation
    PREFIX: Final = "pre"  # S: first characters of the secret
    HASH: Final = "hash"  # S: SHA-256 of the secret, hexadecimal
    LAST: Final = "last"  # S: last characters of the secret
    OLD_HASH: Final = "oldh"  # S: HASH of the replaced secret (optional)
    OLD_LAST: Final = "oldl"  # S: LAST of the replaced secret
    OLD_ENDS: Final = "oldx"  # N: Unix second until which the replaced secret works
    ROTATED: Final = "rot"  # N: Unix second of the last rotation (optional)
    REMINDED: Final = "rmd"  # N: creation of the secret that `key.rotation_due` named (optional)
    REVISION: Final = "rev"  # N: number of changes of the settings (optional)
    PENDING: Final = "want"  # S: KeySettings (JSON) that the state does not have yet (optional)
    DELETING: Final = "going"  # N: Unix second from which the deletion is under way (optional)
    # Only tombstones have these:
    DELETED: Final = "gone"  # N: Unix second of the deletion
    SPENT: Final = "us"  # N: nano-dollars spent in total
    MONTH_SPENT: Final = "um"  # N: nano-dollars in the month of the deletion
    MONTH: Final = "month"  # S: bucket name of the month of the deletion


class KeyNameItem(AnyItem):
    """Core table: the name of a key, unique within its workspace."""

    KEY: Final = "kid"  # S: id of the key


class WorkspaceItem(AnyItem):
    """Core table: a workspace."""

    SHARDS: Final = "n"  # N: wallet shards
    LOCK: Final = "lk"  # N: 0 open, 1 locked by an administrator, 2 paused by the budget
    CREATED: Final = "at"  # N: Unix second of the creation
    ADMISSION: Final = "adm"  # S: an Admission (optional, default: the catalog's)
    BUDGET: Final = "bud"  # N: nano-dollars in a UTC month (optional)
    PAUSES: Final = "bp"  # N: 1 if the budget pauses the workspace (optional)
    RESPONSE_DAYS: Final = "rd"  # N: days for which the keys' responses are stored (optional)
    FILE_DAYS: Final = "fd"  # N: days after which files expire (optional)
    ALLOWED_IPS: Final = "ips"  # S: networks from which its keys may be used (optional)
    KEY_DAYS: Final = "kd"  # N: days after which the secret of a key is refused (optional)
    USAGE_ON: Final = "uo"  # S: a UsageOn for its keys (optional)
    CREDIT_LIMIT: Final = "cl"  # N: nano-dollars of the credit that are lent (optional)
    COPIED: Final = "told"  # S: the settings that were copied to all secrets' items


class SealKeyItem(AnyItem):
    """Core table: the key that encrypts a workspace's compaction items, which clients store."""

    KEY: Final = "seal"  # B: 32 random bytes


class CreditIdItem(AnyItem):
    """Core table: reserves the id of a credit entry, so that no other entry can use the id."""

    PLACE: Final = "place"  # S: sort key of the entry


class CreditEntryItem(AnyItem):
    """Core table: one entry of a workspace's credit ledger."""

    ID: Final = "id"  # S: the caller's id of the entry
    WORKSPACE: Final = "ws"  # S: id of the workspace
    KIND: Final = "kind"  # S: an EntryKind
    AMOUNT: Final = "amt"  # N: nano-dollars, negative if credit was taken back
    NOTE: Final = "note"  # S: the caller's reason
    CREATED: Final = "at"  # N: Unix second of the creation
    GENERATION: Final = "gen"  # S: id of the refunded generation (optional)
    EXPIRES: Final = "ex"  # N: Unix second at which a grant expires (optional)
    REFUNDED: Final = "use"  # S: the UsageGroup of a refund as JSON (optional)


class CreditLotsItem(AnyItem):
    """Core table: what is left of a workspace's expiring grants, as of the item's last change."""

    REVISION: Final = "rev"  # N: number of changes
    SPENT: Final = "sp"  # N: nano-dollars that all shards had spent by the last change
    LOTS: Final = "lots"  # S: the lots as JSON, in the order in which they are spent


class BudgetAlertItem(AnyItem):
    """Core table: a budget alert; the name of a channel is appended to each `_FOR` name."""

    EVENT: Final = "event"  # S: the alert as JSON
    SENT_FOR: Final = "at_"  # N: Unix second at which the channel accepted the alert
    LEASED_FOR: Final = "until_"  # N: Unix second at which a sender's lease ends


class AuditItem(AnyItem):
    """Core table: an audit log entry, stored once for its workspace and once for its month."""

    ENTRY: Final = "entry"  # S: the AuditEntry as JSON


class AuditSealItem(AnyItem):
    """Core table: the seal of a day of an audit log."""

    SEAL: Final = "seal"  # S: the AuditSeal as JSON


class WebhookItem(AnyItem):
    """Core table: a webhook, in one of its workspace's numbered slots."""

    WEBHOOK: Final = "hook"  # S: the Webhook as JSON
    REVISION: Final = "rev"  # N: number of changes of the webhook
    CURSOR: Final = "cur"  # N: Unix millisecond up to which audit log entries were read
    FAILING: Final = "fl"  # N: Unix second of the first failure since the last success (optional)
    DELIVERED: Final = "dl"  # N: Unix second of the last successful delivery (optional)


class DeliveryItem(AnyItem):
    """Core table: the delivery of an event to a webhook, pending or ended."""

    EVENT: Final = "event"  # S: the WebhookEvent as the JSON that is sent
    DELIVERY: Final = "way"  # S: the Delivery as JSON
    NEXT: Final = "nx"  # N: Unix second of the next attempt (optional)


class ItemVersionItem(AnyItem):
    """Core table: the highest version of the items that a release has written (one item)."""

    VERSION: Final = "iv"  # N: a WRITTEN of item_versions.py


class CooldownItem(AnyItem):
    """Core table: the failures of an endpoint within one window."""

    SINCE: Final = "w"  # N: Unix second of the first failure
    COUNT: Final = "n"  # N: number of failures
    LAST: Final = "l"  # N: Unix second of the last failure
    FAULT: Final = "k"  # S: fault of the key in the last failure, or `-` (optional)
    PROBED: Final = "p"  # N: Unix second at which the last probe began (optional)
    PROBES: Final = "r"  # N: number of probes since the endpoint last answered (optional)


class SpeedItem(AnyItem):
    """Core table: sums of an endpoint's response times, in the current and the previous window."""

    SINCE: Final = "w"  # N: Unix second at which the current window began
    ANSWERS: Final = "n"  # N: number of answers in the window
    LATENCY: Final = "f"  # N: sum of milliseconds to first token
    TOKENS: Final = "t"  # N: sum of output tokens, as far as providers reported them
    DURATION: Final = "d"  # N: sum of milliseconds of the answers with reported tokens
    PROMPT: Final = "i"  # N: sum of prompt tokens, as far as providers reported them (optional)
    CACHED: Final = "c"  # N: part of PROMPT that providers had cached (optional)
    BEFORE: Final = "pw"  # N: SINCE of the previous window (optional)
    BEFORE_ANSWERS: Final = "pn"  # N: ANSWERS of the previous window (optional)
    BEFORE_LATENCY: Final = "pf"  # N: LATENCY of the previous window (optional)
    BEFORE_TOKENS: Final = "pt"  # N: TOKENS of the previous window (optional)
    BEFORE_DURATION: Final = "pd"  # N: DURATION of the previous window (optional)
    BEFORE_PROMPT: Final = "pi"  # N: PROMPT of the previous window (optional)
    BEFORE_CACHED: Final = "pc"  # N: CACHED of the previous window (optional)


class AnswerClaimItem(AnyItem):
    """Core table: the request that produces, or produced, the answer to an Idempotency-Key."""

    REQUEST: Final = "gid"  # S: id of the request
    BODY_HASH: Final = "bh"  # S: hash of the request's body
    STATE: Final = "st"  # S: `running` or `done`
    CREATED: Final = "at"  # N: Unix second of the creation


class DeletedResponseItem(AnyItem):
    """Core table: a response whose deletion has begun; the item exists for a day."""


class StandingItem(AnyItem):
    """Core table: a legal hold or an erasure."""

    STATE: Final = "subj"  # S: the LegalHold or Erasure as JSON


class LoginCodeItem(AnyItem):
    """Core table: a step of a sign-in, by the hash of the code that continues it."""

    VALUE: Final = "v"  # B: a struct of sign_in/tickets.py as JSON
    EXPIRES: Final = "ex"  # N: Unix second from which the code is treated as missing


class LoginCountItem(AnyItem):
    """Core table: number of calls from one network address in one time window."""

    COUNT: Final = "n"  # N: number of calls


class FileItem(AnyItem):
    """Core table: an uploaded file, whose content is an object."""

    KEY: Final = "kid"  # S: id of the key that uploaded the file
    MEMBER: Final = "mb"  # S: id of the key's member at the upload (optional)
    FILENAME: Final = "fn"  # S: file name as callers see it
    PURPOSE: Final = "pu"  # S: a FilePurpose
    MEDIA_TYPE: Final = "mt"  # S: media type, detected from the content
    SIZE: Final = "b"  # N: bytes
    CREATED: Final = "at"  # N: Unix second of the creation
    EXPIRES: Final = "ex"  # N: Unix second at which the file expires (optional)
    DELETING: Final = "going"  # N: Unix second at which a caller's deletion began (optional)
    AWAITED: Final = "aw"  # N: Unix second until which an awaited upload may arrive (optional)
    PARTS: Final = "h"  # M: sizes (N) of the parts by id, while the upload is incomplete (optional)
    SENT: Final = "sb"  # N: sum of the bytes of all PARTS
    JOINED: Final = "jn"  # S: hash of the ids of the parts that are, or were, joined


class FileUsageItem(AnyItem):
    """Core table: number and size of the stored files of a workspace, or of one of its keys."""

    FILES: Final = "n"  # N: number of files, including uploads in progress
    SIZE: Final = "b"  # N: sum of the files' bytes
    UPLOADS: Final = "h"  # M: bytes (N) by id of counted files whose item may not exist yet

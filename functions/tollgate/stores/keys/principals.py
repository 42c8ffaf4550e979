"""Principals, decoded from the items of secrets."""

from typing import cast

from tollgate.aws.attributes import Item
from tollgate.core.ids import created_s
from tollgate.core.principal import (
    Admission,
    AnswerSharing,
    KeptAddress,
    KeyRole,
    Principal,
    UsageOn,
)
from tollgate.core.quotas import parse_quotas
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_number,
    read_optional_text,
    read_text,
    read_texts,
    reads_an_item,
)
from tollgate.stores.aws.items import KeyRow, SecretItem, SessionItem
from tollgate.stores.rules.key_age import age_ends_s


@reads_an_item
def principal_of(row: Item) -> Principal:
    """Return the principal described by a secret's item."""
    return Principal(
        key_id=read_text(row, SecretItem.KEY),
        workspace_id=read_text(row, SecretItem.WORKSPACE),
        role=read_role(row),
        label=read_text(row, SecretItem.LABEL),
        tier=read_optional_text(row, SecretItem.TIER),
        models=read_texts(row, SecretItem.MODELS),
        shards=read_number(row, SecretItem.SHARDS),
        labels=read_labels(row),
        # Only the workspace store writes this attribute, and it accepts only values of Admission.
        admission=cast(Admission | None, read_optional_text(row, SecretItem.ADMISSION)),
        old_secret=SecretItem.GRACE_ENDS in row,
        content_days=read_optional_number(row, SecretItem.CONTENT_DAYS),
        response_days=read_optional_number(row, SecretItem.RESPONSE_DAYS)
        or read_optional_number(row, SecretItem.WORKSPACE_RESPONSE_DAYS)
        or None,
        # Only the stores write these attributes, and they accept only values of UsageOn.
        usage_on=cast(
            UsageOn | None,
            read_optional_text(row, SecretItem.USAGE_ON)
            or read_optional_text(row, SecretItem.WORKSPACE_USAGE_ON)
            or None,
        ),
        # Only the stores write this attribute, and they accept only values of AnswerSharing.
        answer_sharing=cast(AnswerSharing | None, read_optional_text(row, SecretItem.ANSWER_CACHE)),
        # Only the stores write this attribute, and they accept only values of KeptAddress.
        kept_address=cast(KeptAddress | None, read_optional_text(row, SecretItem.KEEP_ADDRESS)),
        team_id=read_optional_text(row, SecretItem.TEAM),
        member_id=read_optional_text(row, SecretItem.MEMBER),
        allowed_ips=read_optional_text(row, SecretItem.ALLOWED_IPS),
        key_policy=read_optional_text(row, SecretItem.PROMPT_POLICY),
        key_guardrails=read_optional_text(row, SecretItem.GUARDRAILS),
        cost_max_nano_usd=read_optional_number(row, SecretItem.MAX_COST),
        session_nano_usd=read_optional_number(row, SecretItem.SESSION_BUDGET),
        session_requests_max=read_optional_number(row, SecretItem.SESSION_REQUESTS),
        key_quotas=parse_quotas(read_optional_text(row, SecretItem.QUOTAS)),
        warns_from_percent=read_optional_number(row, SecretItem.WARN_AT),
        workspace_ips=read_optional_text(row, SecretItem.WORKSPACE_IPS) or None,
    )


@reads_an_item
def refused_from_s(row: Item, *, ages: bool) -> int | None:
    """Return the Unix second from which a secret is refused; None if it never is.

    A secret is refused when its key expires, when the grace period after a rotation ends, or when
    it reaches the maximum age set by the workspace, whichever comes first. The key of sessions does
    not age (`ages`), because nobody has its secret.
    """
    names = (SecretItem.EXPIRES, SecretItem.GRACE_ENDS)
    ends = [read_optional_number(row, name) for name in names]
    days = read_optional_number(row, SecretItem.WORKSPACE_KEY_DAYS)
    if ages and days:
        made_s = read_optional_number(row, SecretItem.MADE)
        if made_s is None:
            made_s = created_s(read_text(row, SecretItem.KEY))
        ends.append(age_ends_s(made_s, days))
    return min((end for end in ends if end is not None), default=None)


@reads_an_item
def read_opener(row: Item) -> tuple[str, int]:
    """Return the hash of the secret that opened a playground, and the playground's last second."""
    return read_text(row, SessionItem.OPENER), read_number(row, SessionItem.EXPIRES)


@reads_an_item
def read_labels(row: Item) -> dict[str, str]:
    """Return a key's labels from either of its items."""
    labels = row[KeyRow.LABELS]["M"] if KeyRow.LABELS in row else {}
    return {name: value["S"] for name, value in labels.items()}


@reads_an_item
def read_role(row: Item) -> KeyRole:
    """Return a key's role from either of its items."""
    # Only `create` writes roles, and NewKey allows only values of KeyRole.
    return cast(KeyRole, read_text(row, KeyRow.ROLE))

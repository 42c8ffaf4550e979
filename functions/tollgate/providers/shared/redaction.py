"""What of a provider's own words may be shown: never keys, addresses or pieces of the prompt.

It cuts by form, because the request is not at hand here: whatever looks like a secret, an address,
a long quotation or a dump of data is removed, and what remains is cut to MESSAGE_LENGTH_MAX.
"""

import re
from typing import Final

MESSAGE_LENGTH_MAX: Final = 300
_INPUT_LENGTH_MAX: Final = 4096
# A quotation longer than any name of a field, a model or a value may be a piece of the prompt.
_LONG: Final = 48

_CUTS: Final = (
    # Addresses, whole: secrets ride in user part, path and query alike.
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://\S+", re.IGNORECASE), "[url]"),
    # Data written out, such as the offending part of a request; an index is no data.
    (re.compile(rf"\{{.{{{_LONG},}}(?:\}}|$)|\[(?!\d{{1,4}}\]).{{{_LONG},}}(?:\]|$)"), "[...]"),
    # Long quotations.
    (re.compile(rf"(?P<q>[\"'`])(?:(?!(?P=q)).){{{_LONG},}}(?:(?P=q)|$)"), "[...]"),
    (re.compile(rf"“[^”]{{{_LONG},}}(?:”|$)"), "[...]"),
    # What is announced as a secret, its scheme first.
    (re.compile(r"\b(?:bearer|basic)\s+\S+", re.IGNORECASE), "[redacted]"),
    (
        re.compile(
            r"\b(?:(?:api|access|secret|account)?[ _-]?key(?:[ _-]?id)?|token|secret|password"
            r"|authorization|signature|credential)\b(?:\s+provided)?[\"']?\s*[:=]\s*\S+",
            re.IGNORECASE,
        ),
        "[redacted]",
    ),
    # Well-known forms of keys, their masked forms included.
    (
        re.compile(
            r"\b(?:sk|pk|rk|gsk|xai|key|hf|ghp|github_pat|nvapi|csk|fw|r8|tgp|pplx)[-_][\w*.-]{6,}"
            r"|\b(?:AKIA|ASIA|AIza)[\w*-]{8,}"
        ),
        "[redacted]",
    ),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "[redacted]"),
    # Any long run that mixes letters and digits, unlike words and the names of models.
    (
        re.compile(r"(?<![\w+/=])(?=[\w+/=]*\d)(?=[\w+/=]*[A-Za-z])[\w+/=]{20,}"),
        "[redacted]",
    ),
    (re.compile(r"\S*\*{3,}\S*"), "[redacted]"),
    # Whose account it is: ARNs, the twelve digits in them, Google's projects, addresses of mail.
    (
        re.compile(
            r"\barn:aws[\w-]*:\S+|(?<!\d)\d{12}(?!\d)|\bprojects/[\w.:-]+"
            r"|[\w.+-]+@[\w-]+\.[\w.-]+"
        ),
        "[redacted]",
    ),
)


def redacted(message: str) -> str:
    """One line of at most MESSAGE_LENGTH_MAX characters, without what must not be shown."""
    text = " ".join(message[:_INPUT_LENGTH_MAX].split())
    text = "".join(character for character in text if character.isprintable())
    for pattern, replacement in _CUTS:
        text = pattern.sub(replacement, text)
    if len(text) > MESSAGE_LENGTH_MAX:
        text = text[: MESSAGE_LENGTH_MAX - 3] + "..."
    return text

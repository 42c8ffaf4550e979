"""Finds card numbers, IBANs, e-mail addresses and secrets in a text, by pattern and checksum."""

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from string import ascii_uppercase
from typing import Final

from msgspec import Struct

from tollgate.engine.guardrails.plain_text import PlainText, to_plain
from tollgate.routing.guardrail_sections import Finding

_LUHN: Final = 10
_CARD_DIGITS_MIN: Final = 13
_CARD_DIGITS_MAX: Final = 19
# Digit sums of the doubled digits.
_DOUBLED: Final = dict(zip("0123456789", (0, 2, 4, 6, 8, 1, 3, 5, 7, 9), strict=True))
_IBAN_MODULUS: Final = 97
# Values of letters in an IBAN: A is 10, Z is 35.
_VALUES: Final = {ord(letter): str(int(letter, 36)) for letter in ascii_uppercase}
# Lengths of IBANs by country, as in the registry of ISO 13616.
_IBAN_LENGTHS: Final = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FK FO GL NL SD", 19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK", 21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS",
        23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VA VG", 25: "LY PT ST",
        26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
_ALIGNMENTS: Final = 4


class Match(Struct, frozen=True, order=True):
    """Part of a text that matches a pattern, from `begin` to before `end`."""

    begin: int
    end: int
    finding: str


def _card_length(text: str) -> int:
    """Return the length of the card number that a run of digits begins with; 0 if it has none.

    The last digit of a card number is a check digit (ISO/IEC 7812-1, annex B). Further digits may
    follow after a separator.
    """
    for end in range(len(text), _CARD_DIGITS_MIN - 1, -1):
        if not text[end - 1].isdigit() or text[end : end + 1].isdigit():
            continue
        digits = "".join(filter(str.isdigit, text[:end]))
        if not _CARD_DIGITS_MIN <= len(digits) <= _CARD_DIGITS_MAX or len(set(digits)) == 1:
            continue
        total = sum(map(int, digits[-1::-2])) + sum(map(_DOUBLED.__getitem__, digits[-2::-2]))
        if total % _LUHN == 0:
            return end
    return 0


def _iban_length(text: str) -> int:
    """Return the length of the valid IBAN (ISO 13616-1) that a text begins with; 0 if none."""
    length, end = _IBAN_LENGTHS.get(text[:2], 0), 0
    compact = text.replace(" ", "")[:length]
    if not length or len(compact) < length:
        return 0
    if int((compact[4:] + compact[:4]).translate(_VALUES)) % _IBAN_MODULUS != 1:
        return 0
    for _ in compact:
        end += 1 + (text[end] == " ")
    return 0 if text[end : end + 1].isalnum() else end


class _Pattern(Struct, frozen=True):
    """Expression for candidates; `length_in` returns how many of a candidate's characters match."""

    expression: re.Pattern[str]
    length_in: Callable[[str], int] = len

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of the matches."""
        place = 0
        while (found := self.expression.search(text, place)) is not None:
            begin = found.start()
            length = self.length_in(found.group())
            if length:
                yield begin, begin + length
            place = begin + (length or 1)


# Prefixes and lengths as open scanners have them (gitleaks, tirith-core 0.2.11, nosecrets-rules
# 0.3.7; seen 2026-11-27), with more lengths allowed.
_SECRETS: Final = (
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"gh[oprsu]_[A-Za-z0-9]{36,255}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{36,255}",
    r"glpat-[A-Za-z0-9_-]{20,64}",  # GitLab
    r"hf_[A-Za-z0-9]{30,64}",  # Hugging Face
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,255}",
    r"sk-[A-Za-z0-9_-]{20,255}",  # Anthropic, OpenAI, OpenRouter
    r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,255}",  # Stripe
    r"whsec_[A-Za-z0-9+/=]{24,128}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,255}",  # Slack
    r"-----BEGIN (?:[A-Z]{2,9} ){0,2}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{0,8192}[A-Z -]{0,40}",
)
_PATTERNS: Final[Mapping[Finding, _Pattern]] = {
    "card_number": _Pattern(
        re.compile(r"(?<![0-9])[2-6][0-9](?:[ .-]?[0-9]){11,30}"), _card_length
    ),
    "iban": _Pattern(
        re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,40}"), _iban_length
    ),
    "email": _Pattern(
        re.compile(
            r"[A-Za-z0-9._%+-]{1,48}@(?:[A-Za-z0-9-]{1,24}\.){1,2}[A-Za-z]{2,16}(?![A-Za-z])"
        )
    ),
    "secret": _Pattern(re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_SECRETS)})")),
}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_URL_ALPHABET: Final = str.maketrans("-_", "+/")


def find(text: str, findings: Collection[Finding], *, base64: bool = False) -> list[Match]:
    """Return the matches in a text, in order and without overlap.

    With `base64`, a run of base64 with a match inside is itself a match.
    """
    plain = to_plain(text)
    matches = list(_matches(plain, findings))
    if base64:
        for run in _BASE64.finditer(plain.text):
            finding = next(_found_inside(run.group(), findings), None)
            if finding is not None:
                matches.append(Match(*plain.span(*run.span()), finding))
    return merge(matches)


def release_to(text: str, matches: Collection[Match], window: int, *, base64: bool) -> int:
    """Return the length of the part of an unfinished text in which no match can still begin.

    A match that may still grow is not split. `window` counts visible characters.
    """
    plain = to_plain(text)
    limit = len(plain.text) - window
    if limit <= 0:
        return 0
    end = plain.span(limit - 1, limit)[1]
    if base64:
        run = next((each for each in _BASE64.finditer(plain.text) if each.end() > limit), None)
        if run is not None:
            end = min(end, plain.span(*run.span())[0])
    # Matches come after the run of base64, which may begin within a match: `example.com/…` in an
    # address.
    for match in matches:
        if match.begin < end and (match.end > end or match.end == len(text)):
            end = match.begin
    return end


def _matches(plain: PlainText, findings: Collection[Finding]) -> Iterator[Match]:
    for finding in findings:
        for begin, end in _PATTERNS[finding].find(plain.text):
            yield Match(*plain.span(begin, end), finding)


def _found_inside(run: str, findings: Collection[Finding]) -> Iterator[str]:
    """Yield the findings in a decoded run, whichever of its first characters begins the base64."""
    characters = run.rstrip("=").translate(_URL_ALPHABET)
    for begin in range(_ALIGNMENTS):
        shifted = characters[begin:]
        whole = shifted[: len(shifted) - (len(shifted) % 4 == 1)]
        decoded = b64decode(whole + "=" * (-len(whole) % 4)).decode("utf-8", "replace")
        for match in _matches(to_plain(decoded), findings):
            yield match.finding


def merge(matches: Iterable[Match]) -> list[Match]:
    """Return the matches in order, with each group of overlapping matches merged into one."""
    merged: list[Match] = []
    for match in sorted(matches):
        if merged and match.begin < merged[-1].end:
            end = max(match.end, merged[-1].end)
            merged[-1] = Match(merged[-1].begin, end, merged[-1].finding)
        else:
            merged.append(match)
    return merged

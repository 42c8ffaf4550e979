"""Rendering of transcript segments as subtitles.

SubRip: https://www.matroska.org/technical/subtitles.html; WebVTT:
https://www.w3.org/TR/webvtt1/ (2026-11-22).
"""

import re
from collections.abc import Sequence
from typing import Final

from tollgate.core.work.transcription import Segment

_ARROW: Final = re.compile("-{2,}>")


def write_srt(segments: Sequence[Segment]) -> str:
    """Return the segments as SubRip subtitles, numbered from 1."""
    return "".join(
        f"{number}\n{_times(segment, ',')}\n{_line(segment)}\n\n"
        for number, segment in enumerate(segments, start=1)
    )


def write_vtt(segments: Sequence[Segment]) -> str:
    """Return the segments as WebVTT subtitles."""
    cues = (f"{_times(segment, '.')}\n{_line(segment)}\n\n" for segment in segments)
    return "WEBVTT\n\n" + "".join(cues)


def _times(segment: Segment, mark: str) -> str:
    return f"{_time(segment.start, mark)} --> {_time(segment.end, mark)}"


def _time(time_s: float, mark: str) -> str:
    seconds, milliseconds = divmod(round(time_s * 1_000), 1_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{mark}{milliseconds:03}"


def _line(segment: Segment) -> str:
    """Return the text on one line without `-->`, because blank lines and arrows end a cue."""
    return " ".join(_ARROW.sub("->", segment.text).split())

"""Tollgate: an OpenAI-compatible LLM gateway that scales to zero."""

from typing import Final

# The distribution with this package: on PyPI, `tollgate` is other software.
DISTRIBUTION: Final = "tollgate-llm-slim"

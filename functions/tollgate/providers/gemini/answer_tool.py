"""A schema for the answer as a tool that must be called, where a model refuses both at once.

Gemini before version 3 answers 400 to a JSON answer beside functions. The tool's name is ours
alone, so that the decoder knows a call of it without knowing the request.
"""

from typing import Final

ANSWER_TOOL: Final = "tollgate_final_answer"
ANSWER_TOOL_DESCRIPTION: Final = (
    "Gives the final answer to the user, in the required form. Call it once nothing else is needed."
)

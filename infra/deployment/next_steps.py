"""The commands that follow a deploy: provider keys, the first management key, a completion."""

from collections.abc import Sequence
from typing import Final

from tollgate.core.secret import create_secret_command

_FIRST_USE: Final = """
Next, once: a key to make other keys with. It is shown by this and kept nowhere.
  .venv/bin/tollgate first-key {stack}
Then, with BASE_URL as ApiUrl above and MANAGEMENT_KEY as shown, a key and something to spend:
  curl "$BASE_URL/keys" -H "authorization: Bearer $MANAGEMENT_KEY" \\
    -H "content-type: application/json" -d '{{"name": "me"}}'
  curl "$BASE_URL/credits/grants" -H "authorization: Bearer $MANAGEMENT_KEY" \\
    -H "content-type: application/json" -d '{{"id": "first", "amount": 10, "note": "a start"}}'
  curl -N "$BASE_URL/chat/completions" -H "authorization: Bearer $KEY" \\
    -H "content-type: application/json" \\
    -d '{{"model": "fast", "stream": true, "messages": [{{"role": "user", "content": "Hello"}}]}}'
Is everything well? TOLLGATE_API_KEY=$KEY .venv/bin/tollgate doctor {stack}
"""
_SECRETS: Final = """
Bedrock's Nova models need no key. Other providers of routing.yaml are passed over until theirs is a
secret; its value is typed or piped in, and ends with Ctrl-D:
"""


def next_steps(stack: str, region: str, missing_secrets: Sequence[str]) -> str:
    """Return the text, with a command for each missing secret."""
    lines = "".join(f"  {create_secret_command(name, region)}\n" for name in missing_secrets)
    text = _FIRST_USE.format(stack=f"--stack {stack} --region {region}")
    return text + (_SECRETS + lines if lines else "")

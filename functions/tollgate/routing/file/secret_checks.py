"""Find rows of providers that would send a secret of the platform, or a key written out."""

from collections.abc import Iterator

from tollgate.core.secret import KeyVariables, is_platform_variable
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem, looks_like_secret
from tollgate.routing.schema import KeySection


def check_key(
    document: YamlDocument, where: Where, key: KeySection | None, variables: KeyVariables
) -> Iterator[Problem]:
    """Yield a problem for a reference that names no home, the key itself, or a refused variable."""
    if key is None:
        return
    if key.env is None and key.secret is None:
        yield document.at_value(where, "R043", "key names neither env nor secret")
    pasted = False
    for home, name in (("env", key.env), ("secret", key.secret)):
        if name and looks_like_secret(name):
            pasted = True
            message = f"{home} looks like the key itself; write where the key lives"
            yield document.at_value((*where, home), "R040", message)
    if key.env is not None and not pasted and not variables.allows(key.env):
        yield _refused_variable(document, (*where, "env"), key.env)


def _refused_variable(document: YamlDocument, where: Where, name: str) -> Problem:
    if is_platform_variable(name):
        message = f"{name} is a variable of the platform, which no provider may get"
        return document.at_value(where, "R044", message)
    message = f"{name} is not the name of a provider's key"
    hint = "name it *_API_KEY or *_SERVICE_ACCOUNT, or allow it in TOLLGATE_KEY_VARIABLES"
    return document.at_value(where, "R044", message, hint=hint)

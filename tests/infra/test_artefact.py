"""Every file of functions/ that the template names exists."""

import ast
import os

from tests.infra.translation import FUNCTIONS, Stack
from tollgate.settings import Settings

TASK_ROOT = "/var/task/"


def names_bound_in(source: str) -> set[str]:
    """The module-level names of a source, without running it: entry files reach for AWS."""
    names: set[str] = set()
    for statement in ast.parse(source).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {it.id for it in targets if isinstance(it, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names |= {it.asname or it.name for it in imported}
            case _:
                pass
    return names


def test_every_handler_exists(stack: Stack) -> None:
    for function in stack.functions.values():
        module, _, name = function["Handler"].partition(".")
        assert name in names_bound_in((FUNCTIONS / f"{module}.py").read_text())


def test_the_exec_wrapper_is_a_script_that_lambda_can_run(stack: Stack) -> None:
    path = stack.environment("ChatFunction")["AWS_LAMBDA_EXEC_WRAPPER"]
    wrapper = FUNCTIONS / path.removeprefix(TASK_ROOT)
    assert path.startswith(TASK_ROOT)
    assert wrapper.read_text().startswith("#!")
    assert os.access(wrapper, os.X_OK)


def test_the_functions_have_locked_requirements() -> None:
    lines = (FUNCTIONS / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert pins
    assert all("==" in pin for pin in pins)
    assert "--hash=sha256:" in "".join(lines)


def test_every_variable_of_the_template_is_a_setting(stack: Stack) -> None:
    settings = {field.validation_alias for field in Settings.model_fields.values()}
    for function in stack.functions:
        ours = {it for it in stack.environment(function) if it.startswith("TOLLGATE_")}
        assert ours
        assert ours <= settings, function

"""The exec wrapper, started as Lambda starts it."""

import os
import shutil
import subprocess
from pathlib import Path

WRAPPER = Path(__file__).parents[3] / "functions" / "stream_bootstrap"


def test_the_wrapper_can_be_executed() -> None:
    assert os.access(WRAPPER, os.X_OK)


def test_it_gives_the_interpreter_chat_py_in_place_of_the_stock_client(tmp_path: Path) -> None:
    task_root = tmp_path / "with a space"
    task_root.mkdir()
    shutil.copy(WRAPPER, task_root)
    interpreter = tmp_path / "python3.13"
    interpreter.write_text('#!/bin/sh\nprintf "%s\\n" "$$" "$@"\n')
    interpreter.chmod(0o755)
    started = subprocess.Popen(
        [task_root / "stream_bootstrap", interpreter, "/var/runtime/bootstrap.py", "-x"],
        stdout=subprocess.PIPE,
        text=True,
    )
    told, _ = started.communicate()
    # The same process id: it became the interpreter, so that signals reach it.
    assert told.splitlines() == [str(started.pid), str(task_root / "chat.py")]

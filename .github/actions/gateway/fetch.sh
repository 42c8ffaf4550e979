# Downloads the newest wheel of litellm, which is read as data, and never installed or run.
set -eu
"$(dirname "$TOLLGATE")/python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --dest "$RUNNER_TEMP/wheels" litellm

# Outputs the path of `tollgate`: of COMMAND, or of the version in requirements.txt, which is installed
# from wheels whose hashes are in that file.
set -eu
if test -n "$COMMAND"; then
    command=$(cd "$(dirname "$COMMAND")" && pwd)/$(basename "$COMMAND")
else
    if ! grep --quiet -- '--hash=sha256:' requirements.txt; then
        echo "::error::requirements.txt has no hashes; \`tollgate upgrade\` writes them."
        exit 1
    fi
    python -m venv "$RUNNER_TEMP/tollgate"
    if ! "$RUNNER_TEMP/tollgate/bin/python" -m pip install --quiet --disable-pip-version-check \
        --require-hashes --only-binary :all: --requirement requirements.txt; then
        echo "::error::requirements.txt cannot be installed: a version or a hash in it is not what the index has."
        exit 1
    fi
    command=$RUNNER_TEMP/tollgate/bin/tollgate
fi
echo "command=$command" >> "$GITHUB_OUTPUT"

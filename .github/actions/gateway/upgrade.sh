# Writes the newest version into requirements.txt, and the text of the pull request.
set -eu
"$TOLLGATE" upgrade > "$RUNNER_TEMP/upgrade.txt"
cat "$RUNNER_TEMP/upgrade.txt" >> "$GITHUB_STEP_SUMMARY"
if ! git diff --quiet; then
    {
        printf '~~~~~~text\n'
        head --bytes=59000 "$RUNNER_TEMP/upgrade.txt"
        printf '\n~~~~~~\n'
    } > "$RUNNER_TEMP/body.md"
    echo "title=$(head --lines=1 "$RUNNER_TEMP/upgrade.txt")" >> "$GITHUB_OUTPUT"
    echo "differs=true" >> "$GITHUB_OUTPUT"
fi

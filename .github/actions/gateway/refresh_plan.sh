# Writes the text of the pull request: what the publishers state, and the plan of the new prices.
set -eu
cd "$(git rev-parse --show-toplevel)"
status=0
"$TOLLGATE" plan HEAD --since 7d --markdown > "$RUNNER_TEMP/plan.md" || status=$?
test "$status" -ne 1
{
    printf '<details><summary>What the publishers state</summary>\n\n~~~~~~text\n'
    # First the totals, which are the last two lines, then what has to be decided or changes.
    sed '/^--- /,$d' "$RUNNER_TEMP/refresh.txt" > "$RUNNER_TEMP/findings.txt"
    tail --lines=2 "$RUNNER_TEMP/findings.txt"
    head --bytes=5000 "$RUNNER_TEMP/findings.txt"
    printf '\n~~~~~~\n\n</details>\n\n'
    head --bytes=59000 "$RUNNER_TEMP/plan.md"
} > "$RUNNER_TEMP/body.md"

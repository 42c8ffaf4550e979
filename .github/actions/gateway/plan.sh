# Writes the comment for the pull request that is checked out in the current folder, with two commits:
# its target, and the merge. Fails if the merge must not be used.
set -eu
status=0
"$TOLLGATE" plan HEAD^1..HEAD --markdown > "$RUNNER_TEMP/routing-plan.md" || status=$?
cat "$RUNNER_TEMP/routing-plan.md" >> "$GITHUB_STEP_SUMMARY"
test "$status" -ne 1

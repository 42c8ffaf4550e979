# Writes published prices into the repository's rows, and outputs whether a file of rows changed.
set -eu
"$TOLLGATE" catalog refresh --write --price-map "$RUNNER_TEMP"/wheels/litellm-*.whl > "$RUNNER_TEMP/refresh.txt"
cat "$RUNNER_TEMP/refresh.txt" >> "$GITHUB_STEP_SUMMARY"
git diff --quiet -- '*.yaml' || echo "differs=true" >> "$GITHUB_OUTPUT"

# Takes a newer release of the catalog, writes published prices into the other rows, and outputs whether a
# file of rows changed.
set -eu
set -- --write --price-map "$RUNNER_TEMP"/wheels/litellm-*.whl
if test -f "$RUNNER_TEMP/catalog.yaml"; then
    set -- "$@" --release "$RUNNER_TEMP/catalog.yaml"
fi
"$TOLLGATE" catalog refresh "$@" > "$RUNNER_TEMP/refresh.txt"
cat "$RUNNER_TEMP/refresh.txt" >> "$GITHUB_STEP_SUMMARY"
git diff --quiet -- '*.yaml' || echo "differs=true" >> "$GITHUB_OUTPUT"

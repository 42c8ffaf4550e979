# Writes the comment on access.yaml of the pull request in the current folder, compared with the gateway.
# Fails if the file must not be applied. A fork has no key, so its file is not compared.
set -eu
# A link would be followed out of the checkout.
test ! -L access.yaml
if test -f access.yaml && test -n "$TOLLGATE_URL" && test -n "$TOLLGATE_KEY"; then
    status=0
    "$TOLLGATE" access plan --markdown > "$RUNNER_TEMP/access-plan.md" || status=$?
    cat "$RUNNER_TEMP/access-plan.md" >> "$GITHUB_STEP_SUMMARY"
    test ! -s "$RUNNER_TEMP/access-plan.md" || echo "planned=true" >> "$GITHUB_OUTPUT"
    test "$status" -ne 1
fi

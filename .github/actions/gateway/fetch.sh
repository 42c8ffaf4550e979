# Downloads the newest wheel of litellm, which is read as data, and never installed or run; and for a
# gateway's repository the newest release of the catalog, if SOURCE attests it.
set -eu
"$(dirname "$TOLLGATE")/python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --dest "$RUNNER_TEMP/wheels" litellm
if test -f catalog.yaml; then
    tag=$(gh release list --repo "$SOURCE" --limit 100 --json tagName \
        --jq '[.[].tagName | select(startswith("catalog-"))] | max // empty')
    if test -n "$tag"; then
        gh release download "$tag" --repo "$SOURCE" --pattern catalog.yaml --dir "$RUNNER_TEMP"
        gh attestation verify "$RUNNER_TEMP/catalog.yaml" --repo "$SOURCE" \
            --signer-workflow "$SOURCE/.github/workflows/catalog-release.yml" --source-ref refs/heads/main
    fi
fi

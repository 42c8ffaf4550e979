# Comments once on the pull request of the latest candidate catalog that the gateway withdrew.
set -eu
if test -z "$TOLLGATE_URL" || test -z "$TOLLGATE_KEY"; then
    echo "::notice::The inputs url and key name no gateway, so no canary is looked up."
    exit 0
fi
# The key is read from a pipe, because other processes could read it among the arguments.
reply=$(printf 'header = "authorization: Bearer %s"\n' "$TOLLGATE_KEY" |
    curl --fail --silent --show-error --config - "${TOLLGATE_URL%/}/catalog")
# The publication before the withdrawal has the candidate and the commit of its file.
found=$(printf '%s' "$reply" | jq --compact-output '.data.history | [., .[1:]] | transpose
    | map(select(.[0].withdrawn)) | first // empty')
test -n "$found" || exit 0
revision=$(printf '%s' "$found" | jq '.[0].revision')
commit=$(printf '%s' "$found" | jq --raw-output '.[1].commit // "" | rtrimstr("+")')
if ! printf '%s' "$commit" | grep -Eqx '[0-9a-f]{40}'; then
    echo "::notice::The withdrawn candidate names no commit, so no pull request is found."
    exit 0
fi
marker="<!-- tollgate-canary revision=$revision -->"
candidate=$(printf '%s' "$found" | jq --raw-output '.[1].candidate[:12]')
reason=$(printf '%s' "$found" | jq --raw-output '.[0].withdrawn')
for number in $(gh api "repos/$REPOSITORY/commits/$commit/pulls" --jq '.[].number'); do
    if gh api --paginate "repos/$REPOSITORY/issues/$number/comments" --jq '.[].body' | grep -Fq "$marker"; then
        continue
    fi
    gh pr comment "$number" --repo "$REPOSITORY" --body "$marker
The gateway withdrew the candidate $candidate of this pull request: $reason."
done

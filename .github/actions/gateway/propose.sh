# Pushes what changed in the checkout to BRANCH, and opens or updates its pull request.
set -eu
git switch --quiet --create "$BRANCH"
git add --all
git -c user.name="$BRANCH" -c user.email="$BRANCH@users.noreply.github.com" \
    commit --quiet --message "$TITLE"
gh auth setup-git
git push --quiet --force "https://github.com/$REPOSITORY.git" "$BRANCH"
open=$(gh pr list --head "$BRANCH" --state open --json number --jq '.[0].number // empty')
if test -n "$open"; then
    gh pr edit "$open" --title "$TITLE" --body-file "$RUNNER_TEMP/body.md"
else
    gh pr create --base "$BASE" --head "$BRANCH" --title "$TITLE" --body-file "$RUNNER_TEMP/body.md"
fi

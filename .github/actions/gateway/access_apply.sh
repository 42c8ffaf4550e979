# Makes people, keys and budgets as access.yaml states; the audit log has the commit.
set -eu
"$TOLLGATE" access apply --commit "$GITHUB_SHA"

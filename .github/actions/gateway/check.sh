# Annotates the problems of routing.yaml in the current folder, and fails if the file must not be used.
set -eu
# A link would be followed out of the checkout.
test ! -L routing.yaml
"$TOLLGATE" check --format github --template "$TEMPLATE"

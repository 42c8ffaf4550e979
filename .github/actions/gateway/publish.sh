# Makes the stack serve routing.yaml.
set -eu
"$TOLLGATE" publish --stack "$STACK"

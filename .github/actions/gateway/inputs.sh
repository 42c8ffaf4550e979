# Fails for a value of the input `run` that no step reads, since the job would pass and do nothing, and
# where SOURCE is missing, since nothing could be verified.
set -eu
case "$RUN" in
apply | canary | check | plan | publish | refresh | upgrade) ;;
*)
    echo "::error::run: '$RUN' is none of apply, canary, check, plan, publish, refresh and upgrade."
    exit 1
    ;;
esac
if test "$RUN" = upgrade || { test "$RUN" = refresh && test -f catalog.yaml; }; then
    if test -z "$SOURCE"; then
        echo "::error::source: name the repository of this action, as in \`uses:\`; it must attest what is taken."
        exit 1
    fi
fi

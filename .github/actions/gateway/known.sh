# Fails for a value of the input `run` that no step reads: otherwise the job would pass and do nothing.
set -eu
case "$RUN" in
check | plan | publish | refresh | upgrade) ;;
*)
    echo "::error::run: '$RUN' is none of check, plan, publish, refresh and upgrade."
    exit 1
    ;;
esac

#!/bin/sh
# Create or update the stack with CloudFormation, and its artefacts in a bucket of yours.
# Usage, after `make build`: deploy.sh BUCKET REGION [NAME=VALUE ...]
set -eu
bucket=$1 region=$2
shift 2
packaged=$(mktemp)
trap 'rm -f "$packaged"' EXIT
"${SAM:-sam}" package --template-file "${TEMPLATE:-.aws-sam/build/template.yaml}" --region "$region" \
    --s3-bucket "$bucket" --s3-prefix tollgate --output-template-file "$packaged"
# The template is longer than CloudFormation accepts inline, so it goes to the bucket as well.
aws cloudformation deploy --stack-name tollgate --region "$region" --template-file "$packaged" \
    --s3-bucket "$bucket" --s3-prefix tollgate --no-fail-on-empty-changeset \
    --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND ${1:+--parameter-overrides "$@"}

#!/bin/sh
# Upload what `make build` wrote to a bucket of yours, and print the URL of the template.
# Usage: package.sh BUCKET REGION
set -eu
bucket=$1 region=$2
packaged=$(mktemp)
trap 'rm -f "$packaged"' EXIT
"${SAM:-sam}" package --template-file "${TEMPLATE:-.aws-sam/build/template.yaml}" --region "$region" \
    --s3-bucket "$bucket" --s3-prefix tollgate --output-template-file "$packaged" >&2
# A new template has a new name: Terraform and CloudFormation update a stack if the URL changes.
key=tollgate/template-$(sha256sum "$packaged" | cut -c 1-16).yaml
aws s3 cp --only-show-errors --region "$region" "$packaged" "s3://$bucket/$key" >&2
echo "https://$bucket.s3.$region.amazonaws.com/$key"

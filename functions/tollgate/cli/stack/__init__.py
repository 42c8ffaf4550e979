"""Commands that work with a deployed stack in an AWS account."""

"""`make account-check`: what only a real AWS account can show, asked of a deployed stack."""

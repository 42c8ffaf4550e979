"""`make account-check`: questions that only a real AWS account answers, put to a stack."""

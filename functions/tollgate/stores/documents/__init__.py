"""Documents that a Lambda function reads, stored in the bucket while it reads."""

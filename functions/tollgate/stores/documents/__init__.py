"""Documents read by a Lambda function, and stored in the bucket meanwhile."""

"""Reading of documents by a Lambda function; large documents pass through the bucket."""

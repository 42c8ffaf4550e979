"""Pictures behind Bedrock's InvokeModel."""

"""Images on Bedrock's InvokeModel."""

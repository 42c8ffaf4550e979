"""Embeddings on Bedrock's InvokeModel, where each model family has its own request body."""

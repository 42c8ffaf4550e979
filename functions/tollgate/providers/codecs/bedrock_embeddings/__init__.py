"""Embeddings of Bedrock's InvokeModel, whose bodies are those of each family of models."""

"""Rerankers: in Jina's format by Jina and its imitators, by Cohere, and on Bedrock."""

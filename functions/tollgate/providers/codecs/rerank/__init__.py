"""Rerankers: of Jina and of everyone who has its shape, of Cohere, and of Bedrock."""

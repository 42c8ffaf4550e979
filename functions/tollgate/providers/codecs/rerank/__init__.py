"""Rerankers in the formats of Jina, Voyage and Cohere, and on Bedrock."""

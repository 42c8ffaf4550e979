"""The client format for ranking documents, with the fields of Cohere and Jina."""

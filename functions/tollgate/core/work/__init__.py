"""Work on inputs, a module for each kind: embeddings, images, moderation, ranking, sound."""

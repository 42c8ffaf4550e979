"""Work on inputs, with a module for each kind: embeddings, images, moderation, decisions, ranking
and sound.
"""

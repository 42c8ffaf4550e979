"""Work on inputs, with a module for each kind: embeddings, images, moderation, ranking and
sound.
"""

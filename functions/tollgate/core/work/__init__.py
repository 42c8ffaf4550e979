"""Input work, with one module per kind: embeddings, images, moderation, decisions, ranking and
audio.
"""

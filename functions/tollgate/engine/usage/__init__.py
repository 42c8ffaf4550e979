"""Usage of a generation: reported, estimated, bounded, and covered by its hold."""

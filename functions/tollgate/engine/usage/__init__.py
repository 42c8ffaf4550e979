"""The usage of a generation: reported, estimated, limited, and covered by its hold."""

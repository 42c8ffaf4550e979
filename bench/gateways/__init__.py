"""What is measured, each a process of its own."""

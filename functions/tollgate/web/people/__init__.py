"""Routes and bodies of teams and members, and of their limits."""

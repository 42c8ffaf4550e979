"""Where keys, money and records are kept."""

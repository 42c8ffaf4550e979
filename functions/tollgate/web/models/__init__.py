"""Lists of models, in the formats that clients expect."""

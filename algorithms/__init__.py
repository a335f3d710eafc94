"""One small file per method; the tables below are the registry."""

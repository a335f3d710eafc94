"""The scripted teacher of the cold start: it writes candidates for elementwise chains, good and bad, and repairs them."""

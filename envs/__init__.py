"""Problem suites, loaders, prompts, feedback, and the cold-start teacher."""

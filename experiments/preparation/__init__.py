"""What `experiments.prepare_problems` does with references: it looks at each (`looked`), keeps some (`filters`), and tells of it
(`page`)."""

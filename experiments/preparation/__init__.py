"""What `experiments.prepare_problems` does with references: it looks at each (`looked`), keeps some (`filters`), and tells of it
(`page`). What `experiments.prepare_conversations` does with kept turns: it reads them (`exchanges`) and keeps the good ones
(`choice`)."""

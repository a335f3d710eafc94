"""What `experiments.cold_start` does with a model that exists: it reads conversations (`conversations`), writes them as tokens
(`rows`), trains on the answers in them (`supervised`), and lets the model answer and the evaluator judge now and then
(`examination`). Start at `tune`."""

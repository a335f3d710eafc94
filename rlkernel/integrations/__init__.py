"""Integrations: the evaluator inside other people's trainers. `reward_function` is one for stock TRL, `openenv` a server and its
client, `verifiers` an environment; `service` is for the rest."""

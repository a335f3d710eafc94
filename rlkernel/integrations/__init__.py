"""Integrations: the evaluator inside other people's trainers. `reward_function` is one for stock TRL, `service` for the rest."""

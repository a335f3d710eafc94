"""Runs that train side by side: trainer processes, each with one run at a time, and evaluators that they share.

    the command (`host`)                              a trainer process (`trainer_process`), of several
    --------------------                              -------------------------------------------------
    deals out runs ------------- Assignment --------> train(run, directory, evaluator=FarEvaluator)
    judges, in its own pool <--- Candidate ---------    evaluate
                  `------------- Verdict -----------> |
    lends the shared card <----- Wanted ------------    lease
                  `------------- Lent --------------> |
                        <------- GivenBack ---------- |
    the next run <-------------- Ended -------------- `- finished, or stopped at a checkpoint

One run leaves cores and card idle: it samples while nobody is judged, and its slowest candidate is judged alone. Where times are
measured, a candidate still measures alone on its card, because all runs wait in the queue of one pool.

What a run computes does not depend on who trains beside it: on the CPU, its weights are the same bit for bit, because the number
of threads of a run depends on its model alone (`rlkernel.policy.slots.decoding`), and of larger models on the machine. Only the
log-probabilities that sampling notes differ in their last digits with which requests were sampled together, as they do in a run
alone, and with them the weights of corrections by ratios. Where a card's memory is short, its part decides how many tokens go
through a large model at a time.

The processes are ours and trust each other: messages are pickled.
"""

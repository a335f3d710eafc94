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

What a run computes does not depend on who trains beside it. The processes are ours and trust each other: messages are pickled.
"""

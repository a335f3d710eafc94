"""Problems from anywhere: a directory of files, a table, or a data set on the hub, each read into `rlkernel.types.Problem`.

Start at `load`, which takes what `--problems` says. `schemas` is the registry of tables that are recognised by their columns.
Loading parses the references and executes none of them.
"""

"""`rlkernel serve`: problems and verdicts for OpenEnv clients (`rlkernel.integrations.openenv`)."""

from __future__ import annotations

from collections.abc import Sequence

from rlkernel.errors import UsageError


def serve(source: str, column: Sequence[str], *, turns: int, device: str, jobs: int, host: str, port: int) -> None:
    """Serve the problems of a source until Ctrl-C. Raises UsageError where OpenEnv is missing or there is no problem."""
    try:
        import uvicorn

        from rlkernel.integrations.openenv.server import Task, app
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'rlkernel[openenv]'") from error
    from rlkernel.integrations.service import open_service
    from rlkernel.sources.load import load

    problems = {problem.name: problem for problem in load(source, column).problems}
    try:
        with open_service(device=device, jobs=jobs) as service:
            uvicorn.run(app(Task(service, problems, turns=turns)), host=host, port=port)
    except ValueError as error:
        raise UsageError(f"--device or --jobs: {error}") from error

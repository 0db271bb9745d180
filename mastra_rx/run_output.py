"""What every output is: one shared stream of chunks, one reduction, and an outcome that is settled once.

source -> reducer.feed -> shared stream -> operators -> streams
              |
              +-> settled -> values
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from reactivex import Observable, abc
from reactivex.subject import AsyncSubject

from .errors import MastraRxError, StreamDisposed, StreamInterrupted
from .operators.operator import Operator
from .operators.usage_tree import usage_tree
from .shared_stream import SharedStream
from .sources.iterables import from_chunks
from .sources.source import source_error
from .view import View, here

if TYPE_CHECKING:
    from .chunks import Chunk
    from .operators.usage_tree import UsageNode
    from .sources.iterables import Chunks

V = TypeVar("V")
F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)

log = logging.getLogger("mastra_rx")


class Run(Protocol[F_co]):
    """The reduction of a run."""

    @property
    def run_id(self) -> str | None: ...

    @property
    def is_over(self) -> bool:
        """Whether the run came to an end of its own."""
        ...

    @property
    def failure(self) -> Exception | None:
        """Why the run failed, by its own chunks."""
        ...

    def feed(self, chunk: Chunk) -> Chunk | list[Chunk] | None:
        """Take a chunk; give what readers are to see of it."""
        ...

    def stop(self, error: Exception) -> None:
        """The stream ended before the run did."""
        ...

    def full(self, error: Exception | None) -> F_co:
        """Everything so far, as one immutable value."""
        ...


class RunOutput(Generic[F]):
    """The part that outputs of agents and workflows share."""

    def __init__(self, source: Chunks, run: Run[F], *, history: int | None = None) -> None:
        self._reduction = run
        self._outcome: Outcome[F] | None = None
        self._disposed = False
        self._stream: SharedStream[Chunk] = SharedStream(
            from_chunks(source), stage=run.feed, history=history, gap=_gap, on_end=self._settle
        )

    # ---- what all outputs have ---------------------------------------------------------------------------------------

    @cached_property
    def full_stream(self) -> View[Chunk]:
        """Every chunk. A repeated tool call is left out, a call whose arguments were streamed is put in."""
        return View(self._stream, "full_stream")

    @cached_property
    def usage_tree(self) -> View[UsageNode]:
        """Who used what: by step, nested run, agent, model and task, with totals with and without nested runs.

        As far as it came, also where the run failed: it raises only where the source failed.
        """
        return self._streamed("usage_tree", usage_tree())

    @property
    def run_id(self) -> str | None:
        """The run's id, from the first chunk that has one."""
        return self._reduction.run_id

    @property
    def is_over(self) -> bool:
        """Whether the run came to an end of its own: finished, failed, aborted, blocked or suspended."""
        return self._reduction.is_over

    def get_full_output(self) -> View[F]:
        """Everything as one value. It never raises for a run that failed: look at its `error`.

        full = await output.get_full_output()
        full = output.get_full_output().run()
        """
        return View(Settled(self, lambda outcome: outcome.full), "get_full_output()")

    def consume_stream(self, on_error: Callable[[Exception], Any] | None = None) -> View[None]:
        """Drain the run, starting now. `on_error` is called if the run or its source fails; nothing is ever raised.

        await output.consume_stream()
        output.consume_stream(print).run()
        """
        done: AsyncSubject[None] = AsyncSubject()

        def consumed(outcome: Outcome[F]) -> None:
            if outcome.error is not None and on_error is not None:
                try:
                    on_error(outcome.error)
                except Exception:
                    log.exception("on_error of consume_stream raised")

        def complete(_: Exception | None = None) -> None:
            done.on_next(None)
            done.on_completed()

        Settled(self, consumed).subscribe(scheduler=here())
        self._stream.subscribe(_ignore, complete, complete, scheduler=here())
        return View(done, "consume_stream()")

    def _repr_html_(self) -> str:
        """What has come so far as a timeline, in Jupyter; looking at it starts nothing."""
        from .timeline import timeline_svg

        return timeline_svg(self._stream.so_far)

    def dispose(self) -> None:
        """Stop the run: the source is closed, streams complete, values that are not settled raise `StreamDisposed`."""
        if not self._stream.ended:
            self._disposed = True
            self._stream.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.dispose()

    # ---- how views are made ------------------------------------------------------------------------------------------

    def _streamed(self, name: str, make: Operator[V]) -> View[V]:
        return View(make(self._stream), name)

    def _value(self, name: str, project: Callable[[], V]) -> View[V]:
        def get(outcome: Outcome[F]) -> V:
            if outcome.error is not None:
                raise outcome.error
            return project()

        return View(Settled(self, get), name)

    @property
    def _full(self) -> F:
        return self.settled.full

    # ---- how the outcome is settled ----------------------------------------------------------------------------------

    @property
    def settled(self) -> Outcome[F]:
        """The outcome, as it is now where nothing is settled yet."""
        return self._outcome or self._make_outcome(None)

    def _make_outcome(self, error: Exception | None) -> Outcome[F]:
        return Outcome(self._reduction, error)

    def _settle_failed(self) -> None:
        """An error chunk settles every value at once, with what came until then."""
        if self._outcome is None:
            self._outcome = self._make_outcome(self._reduction.failure)
            _ = self._outcome.full
        self._stream.settle()

    def _finish(self) -> None:
        """Nothing comes after this chunk."""
        self._stream.finish()

    def _settle(self, failure: Exception | None) -> None:
        """The stream ended: settle what no error chunk has settled."""
        if self._outcome is not None:
            return
        error: Exception | None = None
        if failure is not None:
            error = source_error(failure)
        elif not self._reduction.is_over:
            if self._disposed:
                error = StreamDisposed("dispose() was called before the run was over")
            else:
                error = StreamInterrupted("the source closed before the run was over: no `finish` chunk came")
        if error is not None:
            self._reduction.stop(error)
        self._outcome = self._make_outcome(error)
        if error is not None:
            _ = self._outcome.full  # gives the error its `partial`, for readers of streams too


class Outcome(Generic[F]):
    """How a run ended: an error or none, and what it came to."""

    def __init__(self, run: Run[F], error: Exception | None) -> None:
        self._run = run
        self.error = error

    @cached_property
    def full(self) -> F:
        """Everything, also where the run failed; the error has it as its `partial`."""
        full = self._run.full(self.error)
        if isinstance(self.error, MastraRxError):
            self.error.partial = full
        return full


class Settled(Observable[V]):
    """One value: what `get` makes of the outcome, once the run is settled."""

    def __init__(self, output: RunOutput[Any], get: Callable[[Any], V]) -> None:
        super().__init__()
        self._output = output
        self._get = get

    def _subscribe_core(
        self, observer: abc.ObserverBase[V], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        def tell() -> None:
            outcome = self._output.settled
            if outcome.error is not None:
                _ = outcome.full  # gives the error its `partial`
            try:
                value = self._get(outcome)
            except Exception as error:
                observer.on_error(error)
            else:
                observer.on_next(value)
                observer.on_completed()

        return self._output._stream.when_settled(tell, scheduler=scheduler)


def _gap(missed: int) -> Chunk:
    from .chunks import HistoryGap

    return HistoryGap(missed=missed)


def _ignore(_: Any) -> None:
    pass

"""Progress, callback and cancel."""

import io
import signal

import numpy as np
import pytest

from lowland._base.errors import StoppedError
from lowland._base.monitor import Lines, Monitor, format_seconds, open_display
from support.cases import each

Y = np.arange(6.0).reshape(3, 2)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a test moves it, behind the plain lines."""
    clock = Clock()
    monkeypatch.setattr(
        "lowland._base.monitor.open_display",
        lambda label, stream: Lines(label, stream, clock),
    )
    return clock


def test_a_callback_sees_every_step():
    seen = []
    monitor = Monitor(callback=lambda i, y, loss: seen.append((i, y.sum(), loss)))
    with monitor:
        assert not monitor.iteration(1, Y, 3.5)
        assert not monitor.iteration(2, Y + 1, 2.5, total=9)
    assert seen == [(1, 15.0, 3.5), (2, 21.0, 2.5)]
    assert not monitor.stopped


@each(
    ("answer", "stops"),
    [(True, True), (np.True_, True), (False, False), (np.False_, False), (None, False), (1, False)],
)
def test_only_true_stops_the_run(answer, stops):
    monitor = Monitor(callback=lambda *step: answer)
    assert monitor.iteration(1, Y, 1.0) is stops
    assert monitor.stopped is stops


def test_once_stopped_the_run_stays_stopped_and_the_callback_rests():
    calls = []
    monitor = Monitor(callback=lambda i, *rest: calls.append(i) or i == 2)
    assert [monitor.iteration(i, Y, 1.0) for i in (1, 2, 1, 2)] == [False, True, True, True]
    assert calls == [1, 2]
    assert not monitor.cancelled


def test_a_callback_cannot_change_the_embedding():
    def vandal(i, embedding, loss):
        embedding[:] = 0

    monitor = Monitor(callback=vandal)
    with pytest.raises(ValueError, match="read-only"):
        monitor.iteration(1, Y, 1.0)
    assert Y.flags.writeable


def test_an_error_in_the_callback_reaches_the_caller():
    def broken(*step):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Monitor(callback=broken) as monitor:
        monitor.iteration(1, Y, 1.0)


def test_an_embedding_is_made_only_for_a_callback():
    Monitor().iteration(1, lambda: pytest.fail("made for nobody"), 1.0)
    seen = []
    Monitor(callback=lambda i, y, loss: seen.append(y.copy())).iteration(1, lambda: Y, 1.0)
    assert np.array_equal(seen[0], Y)


def test_cancel_stops_an_optimization_and_keeps_its_map():
    monitor = Monitor()
    assert not monitor.iteration(1, Y, 1.0)
    monitor.cancel()
    assert monitor.cancelled
    assert not monitor.stopped
    assert monitor.iteration(2, Y, 1.0) is True
    assert monitor.stopped
    with monitor.phase("extension") as phase:
        phase.advance()  # there is a map: what follows may finish
    assert phase.done == 1


def test_cancel_before_there_is_a_map_raises():
    monitor = Monitor("PCA")
    with monitor, monitor.phase("gram", total=3) as phase:
        phase.advance()
        monitor.cancel()
        with pytest.raises(StoppedError, match="PCA: cancelled in phase 'gram'"):
            phase.advance()
    assert monitor.stopped


def test_cancel_works_from_a_signal_handler():
    monitor = Monitor()
    old = signal.signal(signal.SIGINT, lambda *details: monitor.cancel())
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, old)
    assert monitor.iteration(1, Y, 1.0) is True


def test_a_silent_monitor_writes_nothing(capsys):
    with Monitor("PCA") as monitor:
        with monitor.phase("gram", total=1) as phase:
            phase.advance()
        monitor.iteration(1, Y, 1.0, total=1)
    assert capsys.readouterr() == ("", "")


def test_plain_lines_go_to_standard_error_by_default(capsys):
    with Monitor("PCA", verbose=True) as monitor, monitor.phase("gram", total=2) as phase:
        phase.advance(2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("PCA  gram 2/2  ")


def test_a_phase_reports_at_most_every_two_seconds_and_at_its_end(clock):
    stream = io.StringIO()
    monitor = Monitor("PCA", verbose=True, stream=stream)
    with monitor, monitor.phase("gram", total=20) as phase:
        for _ in range(20):
            clock.now += 0.25
            phase.advance()
    assert stream.getvalue().splitlines() == [
        "PCA  gram 8/20  ETA 3.0 s",
        "PCA  gram 16/20  ETA 1.0 s",
        "PCA  gram 20/20  5.0 s",
    ]


def test_steps_show_their_loss_and_end_with_the_last_one(clock):
    stream = io.StringIO()
    with Monitor("TSNE", verbose=True, stream=stream) as monitor:
        for i in range(1, 4):
            clock.now += 3
            monitor.iteration(i, Y, 10.0 / i, total=100)
        with monitor.phase("extension") as phase:
            phase.advance(7)
    assert stream.getvalue().splitlines() == [
        "TSNE  iteration 1/100  loss 10",
        "TSNE  iteration 2/100  loss 5  ETA 4.9 min",
        "TSNE  iteration 3/100  loss 3.333  ETA 4.8 min",
        "TSNE  iteration 3/100  loss 3.333  6.0 s",
        "TSNE  extension 7  0.0 s",
    ]


def test_a_second_stage_that_counts_from_one_is_shown_apart(clock):
    stream = io.StringIO()
    with Monitor("TSNE", verbose=True, stream=stream) as monitor:
        for i in (1, 2, 1):
            monitor.iteration(i, Y, None)
    assert stream.getvalue() == "TSNE  iteration 2  0.0 s\nTSNE  iteration 1  0.0 s\n"


def test_a_failed_phase_does_not_claim_to_have_ended(clock):
    stream = io.StringIO()
    monitor = Monitor(verbose=True, stream=stream)

    def fail():
        with monitor, monitor.phase("gram", total=2) as phase:
            phase.advance()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stream.getvalue() == ""


def test_a_stream_that_fails_does_not_end_the_run(clock):
    stream = io.StringIO()
    with Monitor(verbose=True, stream=stream) as monitor:
        stream.close()
        with monitor.phase("gram") as phase:
            phase.advance()
        assert monitor.iteration(1, Y, 1.0) is False
    assert phase.done == 1


def test_a_program_without_standard_error_stays_silent(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with Monitor(verbose=True) as monitor, monitor.phase("gram") as phase:
        phase.advance()
    assert phase.done == 1


def test_a_terminal_gets_a_bar_with_phase_percentage_and_loss(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with Monitor("TSNE [x]", verbose=True, stream=stream) as monitor:
        with monitor.phase("neighbors {0}", total=4) as phase:
            phase.advance(4)
        monitor.iteration(5, Y, 2.914, total=10)
    for text in ("TSNE [x]", "neighbors {0}", "100%", "50%", "loss 2.914"):
        assert text in stream.getvalue()


def test_the_bar_is_closed_when_the_run_fails(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monitor = Monitor(verbose=True, stream=Terminal())
    started = []

    def fail():
        with monitor, monitor.phase("gram", total=2):
            started.append(monitor._display.progress.live)
            assert started[0].is_started
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not started[0].is_started


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_display("PCA", Terminal()), Lines)


@each(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.97, "10 s"), (119, "119 s"), (120, "2.0 min"), (7200, "2.0 h")],
)
def test_durations_are_written_for_people(seconds, text):
    assert format_seconds(seconds) == text

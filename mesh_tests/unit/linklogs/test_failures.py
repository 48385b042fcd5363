"""What Spark says when it fails, in one sentence."""

import pyarrow
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from linklogs.failures import FAILURES, GONE, sentence, whole_answers

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
TypeError: 'int' object is not iterable
"""


def test_of_a_worker_the_error_itself_is_said() -> None:
    said = sentence(PySparkException(WORKER))
    assert said == "Spark failed: a Python worker ended with TypeError: 'int' object is not iterable"


def test_without_a_worker_the_first_line_is_said() -> None:
    assert sentence(PySparkException("[NO_ROOM] there is none\nmore")) == "Spark failed: [NO_ROOM] there is none"


class GoneJava:
    """A session of Spark whose Java process has ended, or runs."""

    def __init__(self, is_gone: bool) -> None:
        self.is_gone = is_gone

    @property
    def version(self) -> str:
        if self.is_gone:
            raise Py4JNetworkError("no answer")
        return "4.0"


@pytest.mark.parametrize("error", [EOFError("cut"), OSError("cut"), pyarrow.ArrowInvalid("cut")])
def test_an_answer_that_java_cut_short_by_its_end_is_an_error_of_the_connection(error: Exception) -> None:
    with pytest.raises(FAILURES) as caught, whole_answers(GoneJava(is_gone=True)):  # type: ignore[arg-type]
        raise error
    assert sentence(caught.value) == GONE


def test_the_same_error_while_java_runs_stays_as_it_is() -> None:
    with pytest.raises(EOFError), whole_answers(GoneJava(is_gone=False)):  # type: ignore[arg-type]
        raise EOFError

"""What Spark says when it fails, in one sentence."""

from pyspark.errors import PySparkException

from linklogs.failures import sentence

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

from wire.outcome import Outcome

UNWRITTEN: Outcome
LOST: Outcome

PERIOD_S: float

"""Operations of a broker: requests to the control address, one bounded step at a time."""

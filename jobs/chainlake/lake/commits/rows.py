"""When outputs count as small."""

#: Up to so many rows are looked at on the driver.
SMALL_ROWS = 200_000

"""Amounts of memory and time in words."""


def bytes_text(amount: float) -> str:
    """As "1.2 GiB"."""
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{_two_digits(amount)} {units[0]}"


def seconds_text(seconds: float) -> str:
    """As "3 min": two digits, for it is an estimate."""
    if seconds < 1:
        return "less than a second"
    for unit, size in (("s", 60), ("min", 60), ("h", 24), ("days", 365)):
        if seconds < 1.5 * size:
            return f"{_two_digits(seconds)} {unit}"
        seconds /= size
    return f"{_two_digits(seconds)} years"


def _two_digits(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{float(f'{number:.2g}'):,.0f}"

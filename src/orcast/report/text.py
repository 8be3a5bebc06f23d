"""Text and numbers as they appear in the report: escaped, short, never an empty place."""

from __future__ import annotations

import math
import re
from html import escape

# Where there is no number, and before one that is negative.
NOTHING, MINUS = "\u2013", "\u2212"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")


def clean(text: object) -> str:
    """Text that a file can hold: no control characters, nothing that UTF-8 cannot write.

    >>> clean("a\\x00b\\nc" + chr(0xD800))
    'a b c?'
    """
    return _CONTROL.sub(" ", str(text)).encode("utf-8", "replace").decode("utf-8").strip()


def plain(text: object) -> str:
    """Text made safe between tags and in quoted attributes.

    >>> plain('<b>"')
    '&lt;b&gt;&quot;'
    """
    return escape(clean(text), quote=True)


def shortened(text: object, limit: int = 48) -> str:
    """The beginning and the end of a long text.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 12)
    'abcdefgh…xyz'
    """
    own = clean(text)
    if len(own) <= limit:
        return own
    tail = limit // 4
    return f"{own[: limit - tail - 1]}…{own[-tail:]}"


def name(text: object, *, limit: int = 48) -> str:
    """A name that a user chose, as HTML: isolated from the direction of what is around it, short, whole when hovered.

    >>> name("wind <b>")
    '<bdi>wind &lt;b&gt;</bdi>'
    >>> name("")
    '<bdi class="soft">(no name)</bdi>'
    """
    own = clean(text)
    if not own:
        return '<bdi class="soft">(no name)</bdi>'
    if len(own) <= limit:
        return f"<bdi>{escape(own)}</bdi>"
    return f'<bdi title="{escape(shortened(own, 400))}">{escape(shortened(own, limit))}</bdi>'


def number(value: float | None, *, digits: int = 4, sign: bool = False) -> str:
    """A number with so many digits, thousands apart, an exponent only where nothing else is readable.

    >>> number(12345.678), number(0.00123456), number(-2.5), number(float("nan")), number(3.2e12)
    ('12,346', '0.001235', '−2.5', '–', '3.2e12')
    """  # noqa: RUF002
    if value is None or not math.isfinite(value):
        if value is not None and math.isinf(value):
            return "∞" if value > 0 else f"{MINUS}∞"
        return NOTHING
    size = abs(float(value))
    if size >= 1e9 or 0.0 < size < 1e-5:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        decimals = max(digits - 1 - (math.floor(math.log10(size)) if size > 0.0 else 0), 0)
        text = f"{size:,.{decimals}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return _signed(text, value, sign)


def percent(share: float | None, *, decimals: int = 1, sign: bool = False) -> str:
    """A share in percent.

    >>> percent(0.8125), percent(0.9), percent(-0.031, sign=True), percent(1.0, decimals=0)
    ('81.2%', '90.0%', '−3.1%', '100%')
    """  # noqa: RUF002
    if share is None or not math.isfinite(share):
        return NOTHING
    return _signed(f"{abs(100.0 * share):,.{decimals}f}%", share, sign)


def _signed(text: str, value: float, sign: bool) -> str:
    if not any(c in "123456789" for c in text):
        return text  # no minus before a zero
    return f"{MINUS}{text}" if value < 0 else f"+{text}" if sign else text


def count(many: int, what: str, plural: str | None = None) -> str:
    """So many things, as text.

    >>> count(1, "row"), count(12345, "row"), count(3, "series", "series")
    ('1 row', '12,345 rows', '3 series')
    """
    return f"{many:,} {what if many == 1 else plural or what + 's'}"


def small(value: float) -> str:
    """An error, with four decimals unless it is smaller than that.

    >>> small(0.01234), small(0.00001234)
    ('0.0123', '0.000012')
    """
    return f"{value:.4f}" if value >= 0.0005 or value == 0.0 else number(value, digits=2)


def capital(text: str) -> str:
    """The beginning of a sentence.

    >>> capital("as given")
    'As given'
    """
    return text[:1].upper() + text[1:]

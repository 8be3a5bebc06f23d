"""Escaped text and formatted numbers for HTML and SVG."""

from __future__ import annotations

import math
import re
from html import escape

# Missing number, and the sign of a negative one.
NOTHING, MINUS = "\u2013", "\u2212"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")


def clean(text: object) -> str:
    """Text without control characters and unpaired surrogates.

    >>> clean("a\\x00b\\nc" + chr(0xD800))
    'a b c?'
    """
    return _CONTROL.sub(" ", str(text)).encode("utf-8", "replace").decode("utf-8").strip()


def plain(text: object) -> str:
    """Text escaped for tags and quoted attributes.

    >>> plain('<b>"')
    '&lt;b&gt;&quot;'
    """
    return escape(clean(text), quote=True)


def shortened(text: object, limit: int = 48) -> str:
    """Beginning and end of a long text.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 12)
    'abcdefgh…xyz'
    """
    own = clean(text)
    if len(own) <= limit:
        return own
    tail = limit // 4
    return f"{own[: limit - tail - 1]}…{own[-tail:]}"


def name(text: object, *, limit: int = 48) -> str:
    """User's name as HTML: escaped, shortened, isolated from the text direction around it.

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
    """Number with `digits` significant digits and separated thousands.

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
    """Share in percent.

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
    """Count with its noun.

    >>> count(1, "row"), count(12345, "row"), count(3, "series", "series")
    ('1 row', '12,345 rows', '3 series')
    """
    return f"{many:,} {what if many == 1 else plural or what + 's'}"

"""What tests of HTML share: a strict reader, and evaluation of every kind."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
from scipy.stats import norm

from orcast.evaluate import Evaluation
from orcast.evaluate.verdicts import decide

VOID = {"meta", "link", "br", "hr", "img", "input"}
NASTY = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</title></style></svg><b>",
    "&amp; &lt;",
    "\x00\u202eabc\ud800",
    "x" * 5000,
    "😀 Ünïcode",
    " ",
    "",
    "nan",
)


@dataclass
class Node:
    """A tag with its attributes, the text directly in it, and what is inside."""

    tag: str
    attrs: dict[str, str]
    inside: list["Node"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all(self, tag: str, style: str = "") -> list["Node"]:
        """All tags of a name inside, in order, with a class if one is named."""
        found = []
        for node in self.inside:
            if node.tag == tag and (not style or style in node.attrs.get("class", "").split()):
                found.append(node)
            found += node.all(tag, style)
        return found

    @property
    def text(self) -> str:
        """All text inside, a space for each run of white space; titles of marks are left out."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> list[str]:
        found: list[str] = []
        rest = iter(self.inside)
        for part in self.texts:
            found.append(part)
            node = next(rest, None)
            if node is not None and node.tag not in ("style", "title"):
                found += [*node._texts(), "" if node.tag in ("bdi", "span", "b") else " "]
        return found


class Page(HTMLParser):
    """Reads a page, and fails where a tag is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.top = Node("", {}, texts=[""])
        self.open = [self.top]
        self.feed(text)
        self.close()
        assert self.open == [self.top], [node.tag for node in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs}, texts=[""])
        assert len(node.attrs) == len(attrs), (tag, attrs)
        self.open[-1].inside.append(node)
        self.open[-1].texts.append("")
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].texts[-1] += data


def tags(node: Node) -> list[Node]:
    """Every tag inside."""
    return [each for child in node.inside for each in (child, *tags(child))]


def check_page(page: Page) -> None:
    """Nothing runs, nothing is fetched, nothing is nan."""
    names = "html head meta link title style body header main footer section figure figcaption details summary div"
    names += " span b bdi p ul li h1 h2 h3 h4 a dl dt dd table thead tbody tr th td svg path line rect text circle"
    allowed = set(names.split())
    for node in tags(page.top):
        assert node.tag in allowed, node.tag
        assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name in node.attrs), node.attrs
        if "href" in node.attrs:
            assert node.attrs["href"] == "data:," or re.fullmatch("#model-[0-9]+", node.attrs["href"])
        for name in ("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "width", "height"):
            assert not re.search("nan|inf|e", node.attrs.get(name, "")), node.attrs
    assert "url(" not in page.source
    assert "@import" not in page.source


def action(evaluation: Evaluation) -> str:
    """Decision of the verdict."""
    return decide(evaluation)[0]


def headline(evaluation: Evaluation) -> str:
    """Sentence that says what to do."""
    return decide(evaluation)[1]


def cells(table: Node) -> list[list[str]]:
    """The rows of a table's body."""
    return [[cell.text for cell in row.inside] for row in table.all("tbody")[0].all("tr")]


def value(text: str) -> float:
    """A number as it is written in the report."""
    text = text.replace(",", "").replace("\u2212", "-").removesuffix(" points")
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


# --- evaluation -------------------------------------------------------------------------------------

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])


def one_series(rows: int = 400, *, after: bool = True, seed: int = 0) -> Evaluation:
    """A stream whose forecasts are too narrow, with a promise that is kept."""
    rng = np.random.default_rng(seed)
    middle = 50.0 + np.cumsum(rng.normal(size=rows))
    y = middle + 3.0 * rng.normal(size=rows) + 0.5
    q = norm.ppf(LEVELS)
    t = np.arange(1, rows + 1)
    rest = {"promised": 5 / np.sqrt(t), "miscalibration": 1 / np.sqrt(t), "holds": np.ones(rows)} if after else {}
    return Evaluation.of(
        middle[:, None] + 2.0 * q,
        y,
        after=middle[:, None] + 0.5 + 3.0 * q if after else None,
        levels=LEVELS,
        model="net",
        timed=True,
        time=np.datetime64("2024-01-01T00") + np.arange(rows) * np.timedelta64(1, "h"),
        **rest,
    )


def panel(names: tuple[str, ...] = ("a", "b", "c"), rows: int = 60, *, after: bool = True, seed: int = 1) -> Evaluation:
    """Some series of one length, the later the worse."""
    rng = np.random.default_rng(seed)
    many = len(names)
    scale = np.repeat(1.0 + np.arange(many) / many, rows)
    y = scale * rng.normal(size=many * rows)
    q = np.tile(norm.ppf(LEVELS), (many * rows, 1))
    t = np.tile(np.arange(1, rows + 1), many)
    rest = {"promised": 5 / np.sqrt(t), "miscalibration": 1 / np.sqrt(t), "holds": np.ones(t.size)} if after else {}
    return Evaluation(
        model="tree",
        kind="quantiles",
        levels=LEVELS,
        labels=(),
        before=q,
        after=q * scale[:, None] if after else None,
        y=y,
        series=np.repeat(np.arange(many), rows),
        names=names,
        time=t,
        low=np.full(y.size, -np.inf),
        high=np.full(y.size, np.inf),
        timed=True,
        **rest,
    )


def horizons(series: int = 53, times: int = 60) -> Evaluation:
    """Three horizons of many series: recalibration repairs the first and the third, and shifts the second."""
    rng = np.random.default_rng(5)
    rows = series * times * 3
    horizon = np.tile([1.0, 2.0, 3.0], series * times)
    q = norm.ppf(LEVELS)
    before, after = np.tile(0.6 * q, (rows, 1)), np.tile(q, (rows, 1))
    after[horizon == 2] = before[horizon == 2] + 0.3
    return Evaluation.of(
        before,
        rng.normal(size=rows),
        after=after,
        levels=LEVELS,
        series=np.repeat([f"s{k:02d}" for k in range(series)], times * 3),
        time=np.tile(np.repeat(np.arange(times), 3), series),
        horizon=horizon,
        overlap=2,
        timed=True,
    )


def binary(rows: int = 500, *, after: bool = True) -> Evaluation:
    """Probabilities that are too bold."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=rows)
    y = (rng.random(rows) < norm.cdf(z)).astype(float)
    return Evaluation.of(norm.cdf(2 * z), y, after=norm.cdf(z) if after else None, model="rain", timed=True)


def labels(names: tuple[str, ...] = ("home", "draw", "away"), rows: int = 300) -> Evaluation:
    """Probabilities of labels."""
    rng = np.random.default_rng(3)
    right = rng.dirichlet(np.ones(len(names)), size=rows)
    bold = right**2 / (right**2).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(len(names), p=p) for p in right])
    return Evaluation.of(bold, y, after=right, labels=names, model="match", timed=True)

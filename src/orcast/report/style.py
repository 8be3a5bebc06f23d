"""Style sheet of the report: light and dark colours, narrow screens, print."""

from orcast.plots.drawing import COLOURS, SHEET

LIGHT = ";".join(f"--{name}:{value}" for name, value in COLOURS.items())
DARK = (
    "--paper:#14171b;--ink:#e9e7e2;--soft:#a3abb5;--rule:#30363d;--grid:#262b32;--chance:#454c55;"
    "--before:#c8731a;--after:#a6d2ff;--bad:#ff8a80;--good:#7fd6a0"
)
PAGE = f""":root{{color-scheme:light dark;{LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:62rem;padding:1.5rem clamp(16px,4vw,40px) 3rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif;
overflow-wrap:break-word}}
h1{{font-size:.95rem;margin:0;color:var(--soft)}}
h2{{font-size:1.4rem;margin:3rem 0 0;padding-top:1rem;border-top:3px solid var(--ink)}}
h3{{font-size:1.08rem;margin:2.2rem 0 .2rem}}
p,li{{margin:.3rem 0}}
.soft,footer{{color:var(--soft);font-size:.9rem}}
.headline{{font-size:clamp(1.25rem,1rem + 1.6vw,1.9rem);line-height:1.25;margin:.8rem 0;padding-left:.9rem;
border-left:6px solid var(--soft);text-wrap:pretty}}
.headline.use{{border-color:var(--good)}}
.headline.avoid{{border-color:var(--bad)}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,9.6rem),1fr));gap:.7rem;margin:1.2rem 0}}
.tiles div{{border:1px solid var(--rule);border-radius:6px;padding:.6rem .8rem}}
.tiles dt,.tiles .remark{{font-size:.83rem;color:var(--soft);display:block}}
.tiles dd{{margin:0}}
.tiles .big{{font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}}
.chart{{display:block;overflow:visible;width:calc(100% - var(--left) - 14px);height:var(--height);
margin:1.9rem 14px 3.2rem var(--left);font-variant-numeric:tabular-nums}}
.key{{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;font-size:.86rem}}
.key span{{display:inline-flex;align-items:center;gap:.45rem}}
.swatch{{width:26px;height:12px;flex:none}}
summary{{cursor:pointer;color:var(--soft);padding:.35rem 0}}
.scroll{{overflow-x:auto;border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}}
table{{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;width:100%}}
th,td{{padding:.32rem .8rem .32rem 0;text-align:right;white-space:nowrap}}
th:first-child,td:first-child{{text-align:left}}
thead th{{white-space:normal;vertical-align:bottom;border-bottom:1px solid var(--rule)}}
tbody th{{font-weight:400;white-space:normal;min-width:7rem;max-width:16rem;overflow-wrap:anywhere}}
tbody tr+tr>*{{border-top:1px solid var(--grid)}}
a{{color:var(--after)}}
@media (max-width:560px){{.optional{{display:none}}}}
@media print{{:root{{{LIGHT}}}h2{{break-before:page}}.chart,.tiles,tr{{break-inside:avoid}}
*{{print-color-adjust:exact}}}}
"""

STYLE = PAGE + SHEET

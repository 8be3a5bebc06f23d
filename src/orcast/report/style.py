"""The style sheet of the report: colours as variables, light and dark, phone first, print."""

# Orange and blue are told apart with any colour vision; beside that one is light and dashed, the other dark and solid
# (on dark paper the other way round), so they are told apart in grey too.
_LIGHT = """
--paper:#fdfcfa;--ink:#1c2127;--soft:#59626c;--rule:#e2dfd8;--grid:#e9e6df;--chance:#d3cfc4;
--before:#c46a0a;--after:#0b4f94;--outcome:#1c2127;--bad:#b3261e;
"""
_DARK = """
--paper:#14171b;--ink:#e9e7e2;--soft:#a3abb5;--rule:#30363d;--grid:#262b32;--chance:#454c55;
--before:#c8731a;--after:#a6d2ff;--outcome:#f3f1ec;--bad:#ff8a80;
"""

SHEET = (
    ":root{color-scheme:light dark;"
    + _LIGHT
    + "}@media (prefers-color-scheme:dark){:root{"
    + _DARK
    + "}}"
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue","Noto Sans","Liberation Sans",Arial,sans-serif;overflow-wrap:break-word}
main,header,footer{max-width:70rem;margin:0 auto;padding:0 clamp(16px,4vw,40px)}
header{padding-top:clamp(24px,5vw,56px)}
h1{font-size:1rem;font-weight:600;margin:0;letter-spacing:.01em}
h2{font-size:1.5rem;line-height:1.25;margin:3.5rem 0 .25rem;padding-top:1.25rem;border-top:3px solid var(--ink)}
h3{font-size:1.15rem;line-height:1.3;margin:0 0 .15rem}
p{margin:.35rem 0}
.soft,.note,footer{color:var(--soft)}
.bad,summary.bad{color:var(--bad)}
.assumption{margin:.4rem 0 0;padding-left:.7rem;border-left:3px solid var(--chance)}
.note{font-size:.875rem;max-width:46rem}
.verdict{font-family:Charter,"Bitstream Charter","Sitka Text",Cambria,Georgia,"Liberation Serif",serif;
margin:1.1rem 0 0;max-width:50rem}
.verdict p{font-size:1.06rem;line-height:1.5}
.verdict p:first-child{font-size:clamp(1.5rem,1.15rem + 1.9vw,2.25rem);line-height:1.22;
margin-bottom:.6rem;text-wrap:pretty}
.verdict.several p,.verdict.several p:first-child{font-size:clamp(1.1rem,1rem + .6vw,1.35rem);line-height:1.35;
margin-bottom:.4rem}
.keys{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,10.8rem),1fr));gap:0 1.3rem;margin:1.75rem 0 0;
border-bottom:1px solid var(--rule)}
.keys div{border-top:1px solid var(--rule);padding:.7rem 0}
.keys dt{font-size:.85rem;color:var(--soft)}
.keys dd{margin:.1rem 0 0;font-variant-numeric:tabular-nums}
.keys .big{font-size:1.2rem;font-weight:600;line-height:1.3}
.keys .big span{white-space:nowrap}
.keys .was{font-weight:400;color:var(--soft)}
.keys .remark{font-size:.85rem;color:var(--soft);display:block}
figure,section.part{margin:2.75rem 0 0}
figcaption{max-width:46rem}
figcaption p{font-size:.925rem;color:var(--soft);margin:.1rem 0 0}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr));gap:0 2rem}
.pair h4{font-size:.925rem;font-weight:600;margin:.8rem 0 0}
.narrow{max-width:27rem}
.chart{display:block;overflow:visible;width:calc(100% - var(--left) - 14px);margin:2rem 14px 3.4rem var(--left)}
.wide{height:var(--height)}
.square{aspect-ratio:1}
.chart svg{overflow:visible}
.chart text{font-size:.78rem;fill:var(--soft);font-variant-numeric:tabular-nums}
.chart .up,.chart .below{text-anchor:end}
.chart .across{text-anchor:middle}
.chart .label{fill:var(--ink)}
.grid{stroke:var(--grid)}
.base{stroke:var(--soft)}
.stub{fill:var(--soft)}
path{vector-effect:non-scaling-stroke;fill:none;stroke:none}
path.line{stroke-width:2.2;stroke-linejoin:round;stroke-linecap:butt}
path.thin{stroke-width:1.5}
path.dot{stroke-linecap:round;stroke-width:8}
path.dot.given{stroke:var(--bad)}
path.dot.tracked{stroke:var(--soft)}
path.before{stroke:var(--before)}
path.after{stroke:var(--after)}
path.line.before{stroke-dasharray:6 3}
path.line.target{stroke:var(--ink);stroke-width:1;stroke-dasharray:1.5 3}
path.line.promised{stroke:var(--ink);stroke-width:1.8;stroke-dasharray:9 4}
path.range{stroke:var(--ink);stroke-width:1.5}
path.range.halo{stroke:var(--paper);stroke-width:4.5}
path.line.median{stroke:var(--soft);stroke-width:1.3}
path.dot.outcome{stroke:var(--outcome);stroke-width:4.2}
path.bar{stroke:none}
path.bar.before,path.area.before{fill:var(--before);stroke:none}
path.bar.after,path.area.after{fill:var(--after);stroke:none}
path.area{stroke:none}
path.area.outer{fill-opacity:.2}
path.area.inner{fill-opacity:.36}
path.area.chance,path.bar.chance{fill:var(--chance);fill-opacity:.75}
path.area.over{fill:var(--ink);fill-opacity:.2}
path.bar.shade{fill-opacity:.25}
.key{display:flex;flex-wrap:wrap;gap:.15rem 1.3rem;font-size:.875rem;margin:.6rem 0 0}
.key span{display:inline-flex;align-items:center;gap:.5rem}
.swatch{width:26px;height:12px;flex:none}
details{margin:.2rem 0 0;font-size:.925rem}
summary{cursor:pointer;color:var(--soft);padding:.35rem 0;width:fit-content}
summary:hover{color:var(--ink)}
summary:focus-visible,a:focus-visible,.scroll:focus-visible{outline:2px solid var(--after);outline-offset:2px}
.scroll{overflow-x:auto;max-width:100%;border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}
details .scroll{max-height:26rem;overflow-y:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;width:100%}
figure details table{width:auto;min-width:min(100%,24rem)}
th,td{padding:.34rem .9rem .34rem 0;text-align:right;white-space:nowrap;vertical-align:top}
th:first-child,td:first-child{text-align:left}
thead th{font-weight:600;white-space:normal;min-width:4.5rem;
border-bottom:1px solid var(--rule);vertical-align:bottom;background:var(--paper);
position:sticky;top:0}
tbody th{font-weight:400;white-space:normal;min-width:12rem;max-width:17rem;overflow-wrap:anywhere;position:sticky;
left:0;background:var(--paper)}
tbody tr+tr>*{border-top:1px solid var(--grid)}
.texts td,.texts th{text-align:left;white-space:normal}
.tight th,.tight td{padding-right:.55rem}
.tight thead th{min-width:3.3rem}
.tight tbody th{min-width:10.5rem}
.dumbbell{display:block;width:9rem;height:1.4em;margin:.05rem 0}
.dumbbell .allowed{fill:var(--chance);fill-opacity:.35}
.dumbbell .one{stroke:var(--ink);stroke-dasharray:1.5 3}
.dumbbell .bar{stroke:var(--soft)}
.dumbbell circle{stroke:var(--paper);stroke-width:1}
.dumbbell .before{fill:var(--before)}
.dumbbell .after{fill:var(--after)}
.series th:nth-child(2){text-align:left}
a{color:var(--after);text-underline-offset:.15em}
footer{font-size:.85rem;margin-top:4rem;padding-top:1rem;padding-bottom:3rem}
footer p{border-top:1px solid var(--rule);padding-top:1rem}
@media (max-width:560px){.optional{display:none}path.dot.outcome{stroke-width:3.2}
tbody th{min-width:7.5rem;max-width:9rem}}
figure details tbody th{min-width:0;white-space:nowrap}
@media print{:root{"""
    + _LIGHT
    + """--paper:#fff}body{font-size:10.5pt}h2{break-before:page}h2:first-of-type{break-before:auto}
.chart,.pair,.keys,tr{break-inside:avoid}
figcaption,.key{break-after:avoid}details .scroll{max-height:none;overflow:visible}.scroll{overflow:visible}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}thead th{position:static}
details::details-content{content-visibility:visible;display:block;height:auto}}
"""
)

// The style sheet of every page. Series of a chart have the colours --c0 to --c7, told apart also by those who see few
// colours [Okabe & Ito 2008], darker on white and lighter on black; steps of a heat map --h0 to --h8.
#include "apps/pages/html.h"

namespace tapedeck {

const char* const style_sheet = R"(:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1f24; --soft: #59636e; --line: #d4d9df; --panel: #f5f7f9; --link: #0b5cad;
  --good: #17733f; --bad: #b3261e;
  --c0: #0b62b8; --c1: #c4500a; --c2: #17804d; --c3: #a03c8c; --c4: #8a6d00; --c5: #0f7f8c; --c6: #6a52c9; --c7: #5c6670;
  --h0: #edf3fb; --h1: #d8e6f6; --h2: #bdd5ef; --h3: #9cc0e5; --h4: #76a7d8; --h5: #4f8cc7; --h6: #2f71b0; --h7: #195692;
  --h8: #0b3d70;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #14171b; --ink: #e6e9ed; --soft: #a0a9b4; --line: #39414a; --panel: #1d2228; --link: #7db7f5;
  --good: #6fd39a; --bad: #ff8a80;
  --c0: #62abf5; --c1: #f2935a; --c2: #57c98d; --c3: #e08fd0; --c4: #d9bc4a; --c5: #56c7d4; --c6: #ab9bf5; --c7: #aeb7c1;
  --h0: #1a2532; --h1: #1d3147; --h2: #203f5f; --h3: #255079; --h4: #2d6496; --h5: #3b7cb5; --h6: #559ad1; --h7: #7db9e8;
  --h8: #b3dcfa;
} }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, Helvetica,
  Arial, sans-serif; overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .6rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; } h4 { font-size: .95rem; margin: 1rem 0 .3rem; }
p { max-width: 75ch; margin: .4rem 0; } a { color: var(--link); }
.lead { font-size: 1.1rem; } .note { color: var(--soft); font-size: .9rem; } .warn { color: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr)); gap: 20px 28px; margin: 8px 0 16px; }
figure { margin: 0; min-width: 0; max-width: 620px; } figure.large { max-width: 780px; margin: 12px 0; }
figcaption { font-weight: 600; margin-bottom: 4px; } figcaption .note { font-weight: 400; display: block; }
svg { display: block; width: 100%; height: auto; font-family: Helvetica, Arial, sans-serif; overflow: hidden; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .4rem 0 1rem; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: 4px; }
th, td { text-align: left; vertical-align: top; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; overflow-wrap: normal; } td.number { overflow-wrap: normal; } td:first-child { min-width: 5rem; } th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: block; background: linear-gradient(var(--h2), var(--h2)) no-repeat 0 0 / var(--share) 100%; padding: 0 4px; }
.facts { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: 2px 16px; margin: .4rem 0; font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; }
.many { columns: 15rem; column-gap: 28px; font-size: .85rem; margin: .2rem 0; } .many div { break-inside: avoid; }
.many dt, .many dd { display: inline; }
details { border-top: 1px solid var(--line); padding: 6px 0; } summary { cursor: pointer; font-weight: 600; }
.holds { color: var(--good); font-weight: 600; } .fails { color: var(--bad); font-weight: 600; }
.rules { list-style: none; padding: 0; } .rules li { border-bottom: 1px solid var(--line); padding: 5px 0; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .92em; }
svg text { fill: var(--ink); } svg .soft { fill: var(--soft); } svg .halo { stroke: var(--paper); stroke-width: 3px;
  paint-order: stroke; stroke-linejoin: round; } svg .grid { stroke: var(--line); stroke-width: 1; } svg .minor { stroke-opacity: .45; }
svg .axis { stroke: var(--soft); stroke-width: 1; fill: none; } svg .region { fill: var(--soft); fill-opacity: .1; }
svg .guide { stroke: var(--soft); stroke-width: 1.3; stroke-dasharray: 5 4; } svg .none { fill: transparent; stroke: none; }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; } svg .thin { stroke-width: 1.1; stroke-opacity: .75; }
svg .dashed { stroke-dasharray: 7 4; } svg .dotted { stroke-dasharray: 2 3; } svg .band { fill-opacity: .16; stroke: none; }
svg .s0 { stroke: var(--c0); } svg .s1 { stroke: var(--c1); } svg .s2 { stroke: var(--c2); } svg .s3 { stroke: var(--c3); }
svg .s4 { stroke: var(--c4); } svg .s5 { stroke: var(--c5); } svg .s6 { stroke: var(--c6); } svg .s7 { stroke: var(--c7); }
svg .f0 { fill: var(--c0); } svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); } svg .f3 { fill: var(--c3); }
svg .f4 { fill: var(--c4); } svg .f5 { fill: var(--c5); } svg .f6 { fill: var(--c6); } svg .f7 { fill: var(--c7); }
svg .open { fill: var(--paper); stroke-width: 1.6; } svg .best { fill: none; stroke: var(--ink); stroke-width: 2; }
svg .h0 { fill: var(--h0); } svg .h1 { fill: var(--h1); } svg .h2 { fill: var(--h2); } svg .h3 { fill: var(--h3); }
svg .h4 { fill: var(--h4); } svg .h5 { fill: var(--h5); } svg .h6 { fill: var(--h6); } svg .h7 { fill: var(--h7); }
svg .h8 { fill: var(--h8); } svg .empty { fill: none; stroke: var(--line); } svg text.turned { fill: var(--paper); }
svg .lost { fill: var(--soft); fill-opacity: .18; stroke: var(--line); } svg .blown { fill: var(--bad); fill-opacity: .3; stroke: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 160px), 1fr)); gap: 10px; margin: 14px 0; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px; font-size: .85rem; break-inside: avoid; }
.tile b { display: block; font-size: 1.3rem; line-height: 1.3; } .tile span { color: var(--soft); display: block; }
@media (max-width: 640px) {
  table.cards thead { display: none; } table.cards, table.cards caption, table.cards tbody, table.cards tr, table.cards td { display: block; }
  table.cards tr { border-bottom: 1px solid var(--line); padding: 6px 0; }
  table.cards td { border: 0; padding: 1px 0; text-align: left; }
  table.cards td::before { content: attr(data-column) ": "; color: var(--soft); }
  table.cards td[data-column=""]::before { content: none; }
  .facts { grid-template-columns: 1fr; } dd { margin-bottom: 4px; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --panel: #fff; --link: #000;
    --c0: #0b62b8; --c1: #c4500a; --c2: #17804d; --c3: #a03c8c; --c4: #8a6d00; --c5: #0f7f8c; --c6: #6a52c9; --c7: #5c6670;
    --h0: #edf3fb; --h1: #d8e6f6; --h2: #bdd5ef; --h3: #9cc0e5; --h4: #76a7d8; --h5: #4f8cc7; --h6: #2f71b0; --h7: #195692;
    --h8: #0b3d70; --good: #000; --bad: #000; }
  body { font-size: 11pt; } main { max-width: none; padding: 0; } figure, tr, li { break-inside: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  h2, h3 { break-after: avoid; } details::details-content { content-visibility: visible; display: block; height: auto; }
}
)";

}  // namespace tapedeck

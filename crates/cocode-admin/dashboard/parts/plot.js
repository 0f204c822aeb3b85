// The latencies of one server over time: a dot for each call, a cross for each that failed, lines for p50 and p95.
// The height is logarithmic, since calls of one server differ by orders of magnitude.
import { h, put, svg, sync, uniqueId, write } from '../lib/dom.js';
import { milliseconds, moment, percent, plural } from '../lib/format.js';

const HEIGHT = 112;
const MARGIN = { top: 8, right: 34, bottom: 18, left: 42 };
const DOT = 3;
const CROSS = 3;

/** Marks of time that read well, for spans from a minute to an hour, in seconds. */
const TIME_STEPS = [10, 15, 30, 60, 120, 300, 600, 900];

/** Spans that can be chosen, in seconds, and how many calls are enough to look at. */
const SPANS = [60, 300, 1_800, 3_600];
const ENOUGH = 12;

/** So few calls stand on stems: a dot alone is hardly seen. */
const MAX_STEMS = 24;

/** Percentiles of fewer calls than this say nothing. */
const LEAST_FOR = new Map([
  ['p50', 4],
  ['p95', 10],
]);

/** The shortest span in which there is something to see: all calls of late, or enough of them. */
export function fittingSpan(latencies, now = Date.now()) {
  const times = latencies
    .flatMap((latency) => latency?.recent ?? [])
    .map((dot) => moment(dot.at))
    .filter((at) => at !== null && now - at < SPANS.at(-1) * 1_000);
  const within = (span) => times.filter((at) => now - at < span * 950).length;
  return (
    SPANS.find((span) => times.length > 0 && within(span) >= Math.min(ENOUGH, times.length)) ??
    (times.length > 0 ? SPANS.at(-1) : SPANS[1])
  );
}

/** The powers of ten from one latency to another. */
function decades({ lowest, highest }) {
  const values = [];
  for (let value = lowest; value <= highest * 1.001; value *= 10) values.push(value);
  return values;
}

/** Powers of ten that enclose all latencies, at least two of them apart. */
function rangeOf(values) {
  const highest = 10 ** Math.ceil(Math.log10(Math.max(10, ...values) * 1.05));
  const lowest = 10 ** Math.floor(Math.log10(Math.max(0.1, Math.min(highest / 100, ...values))));
  return { lowest, highest };
}

const shortTime = (value) =>
  value >= 1_000
    ? `${Math.round(value / 1_000)} s`
    : `${value < 1 ? value.toFixed(1) : Math.round(value)} ms`;

/** What the plot shows, in words. */
function summary(latency) {
  const { count = 0, errors = 0, p50, p95, recent = [] } = latency;
  if (count === 0 && recent.length === 0) return 'No calls yet.';
  const last = recent.at(-1);
  return [
    `${plural(count, 'call')}, ${plural(errors, 'error')} (${percent(errors, count)})`,
    `p50 ${milliseconds(p50)}`,
    `p95 ${milliseconds(p95)}`,
    last && `latest ${milliseconds(last.milliseconds)}${last.ok === false ? ', failed' : ''}`,
  ]
    .filter(Boolean)
    .join('; ');
}

/** How high a latency stands, between 0 at the bottom and 1 at the top. */
const scale = (value, { lowest, highest }) =>
  Math.log10(Math.max(lowest, value) / lowest) / Math.log10(highest / lowest);

function cross(x, y) {
  const size = 2 * CROSS;
  return `M${x - CROSS} ${y - CROSS}l${size} ${size}m0 ${-size}l${-size} ${size}`;
}

function mark({ ok, x, y }) {
  const dot =
    ok !== false
      ? svg('circle', { class: 'dot', cx: x, cy: y, r: DOT })
      : svg('path', { class: 'dot failed', d: cross(x, y) });
  const stem = svg('line', { class: 'stem', x1: x, x2: x, y1: y, y2: HEIGHT - MARGIN.bottom });
  return svg('g', { class: ok === false ? 'mark failed' : 'mark' }, stem, dot);
}

/** `{ node, update(latency), tick(now), resize() }`. Time moves by moving one group, not each dot. */
function latencyPlot(name, { spanSeconds = () => 300 } = {}) {
  const grid = svg('g', { class: 'grid' });
  const dots = svg('g', { class: 'dots' });
  const lines = svg('g', { class: 'percentiles' });
  const nothing = svg('text', { class: 'nothing', y: HEIGHT / 2 - 2, 'text-anchor': 'middle' });
  const clip = uniqueId('clip');
  const cut = svg('rect', { x: 0, y: 0, height: HEIGHT });
  const picture = svg(
    'svg',
    { class: 'plot', role: 'img', height: HEIGHT, width: '100%' },
    svg('defs', null, svg('clipPath', { id: clip }, cut)),
    grid,
    lines,
    svg('g', { 'clip-path': `url(#${clip})` }, dots),
    nothing,
  );
  const node = h('div', { class: 'plot-frame' }, picture);
  let latency = { recent: [] };
  let width = 0;
  let drawn = '';
  let drawnSpan = spanSeconds();
  let origin = Date.now();

  const inner = () => Math.max(10, width - MARGIN.left - MARGIN.right);
  const perMs = () => inner() / (drawnSpan * 1_000);
  const yOf = (value, range) =>
    HEIGHT - MARGIN.bottom - scale(value, range) * (HEIGHT - MARGIN.top - MARGIN.bottom);

  const drawGrid = (range) => {
    grid.replaceChildren();
    const right = MARGIN.left + inner();
    const values = decades(range);
    for (const [index, value] of values.entries()) {
      const y = yOf(value, range);
      grid.append(svg('line', { x1: MARGIN.left, x2: right, y1: y, y2: y }));
      // Where many stand close together, every other one is named.
      if (values.length > 4 && (values.length - 1 - index) % 2 === 1) continue;
      grid.append(svg('text', { x: MARGIN.left - 6, y: y + 3.5, 'text-anchor': 'end' }, shortTime(value)));
    }
    const span = drawnSpan;
    const step = TIME_STEPS.find((one) => span / one <= 5) ?? 900;
    for (let at = 0; at <= span; at += step) {
      const x = right - at * 1_000 * perMs();
      if (x < MARGIN.left + 14) break;
      const words = at === 0 ? 'now' : at % 60 === 0 ? `−${at / 60} min` : `−${at} s`;
      grid.append(
        svg('text', { x, y: HEIGHT - 4, class: 'time', 'text-anchor': at === 0 ? 'end' : 'middle' }, words),
      );
    }
  };

  /** Those that say something. */
  const percentiles = () =>
    [
      ['p95', latency.p95],
      ['p50', latency.p50],
    ].filter(([word, value]) => typeof value === 'number' && latency.count >= LEAST_FOR.get(word));

  const drawLines = (range) => {
    lines.replaceChildren();
    const right = MARGIN.left + inner();
    const found = percentiles();
    if (found.length === 2) {
      const [top, bottom] = found.map(([, value]) => yOf(value, range));
      const height = Math.max(0, bottom - top);
      lines.append(svg('rect', { class: 'band', x: MARGIN.left, y: top, width: inner(), height }));
    }
    let last = -100;
    for (const [word, value] of found) {
      const y = yOf(value, range);
      lines.append(svg('line', { class: word, x1: MARGIN.left, x2: right, y1: y, y2: y }));
      // Two words that would stand on each other are moved apart.
      const labelY = Math.min(HEIGHT - MARGIN.bottom + 4, Math.max(y + 3.5, last + 11));
      last = labelY;
      lines.append(svg('text', { class: word, x: right + 5, y: labelY }, `${word}`));
    }
  };

  const draw = () => {
    if (width === 0) return;
    const newest = Date.now();
    drawnSpan = spanSeconds();
    const shown = latency.recent
      .map((dot) => ({ ...dot, at: moment(dot.at) }))
      .filter(({ at }) => at !== null && newest - at < drawnSpan * 1_000 * 1.1);
    const lines = percentiles().map(([, value]) => value);
    const values = [...shown.map((dot) => dot.milliseconds), ...lines].filter(
      (value) => typeof value === 'number',
    );
    const range = rangeOf(values);
    const frame = [range.lowest, range.highest, width, drawnSpan].join();
    if (frame !== drawn) {
      drawn = frame;
      origin = newest;
      sync(dots, [], String, () => null);
      drawGrid(range);
    }
    drawLines(range);
    const right = MARGIN.left + inner();
    put(cut, 'x', MARGIN.left - DOT);
    put(cut, 'width', inner() + 2 * DOT);
    sync(
      dots,
      shown,
      (dot) => `${dot.at}/${dot.milliseconds}/${dot.ok}`,
      (dot) => ({
        node: mark({ ok: dot.ok, x: right + (dot.at - origin) * perMs(), y: yOf(dot.milliseconds, range) }),
      }),
    );
    put(dots, 'class', shown.length <= MAX_STEMS ? 'dots sparse' : 'dots');
    put(node, 'data-dots', shown.length);
    const words =
      shown.length > 0 ? '' : latency.recent.length > 0 ? 'No calls in this time' : 'No calls yet';
    write(nothing, words);
    put(nothing, 'x', MARGIN.left + inner() / 2);
  };

  const observer = new ResizeObserver(([entry]) => {
    width = Math.round(entry.contentRect.width);
    draw();
    tick();
  });
  observer.observe(node);

  function tick(now = Date.now()) {
    // Where the span follows the calls, time alone may change it.
    if (spanSeconds() !== drawnSpan) draw();
    put(dots, 'transform', `translate(${(-(now - origin) * perMs()).toFixed(2)} 0)`);
  }

  return {
    node,
    tick,
    redraw: () => {
      draw();
      tick();
    },
    update(next) {
      latency = next;
      put(picture, 'aria-label', `Latencies of ${name}: ${summary(next)}`);
      draw();
      tick();
    },
  };
}

/** The plot with its name and numbers, for a grid of plots. */
export function plotCard(name, title, options) {
  const plot = latencyPlot(name, options);
  const numbers = { count: h('dd'), errors: h('dd'), p50: h('dd'), p95: h('dd') };
  const node = h(
    'figure',
    { class: 'plot-card' },
    h(
      'figcaption',
      null,
      title,
      h(
        'dl',
        { class: 'numbers' },
        h('div', null, h('dt', null, 'p50'), numbers.p50),
        h('div', null, h('dt', null, 'p95'), numbers.p95),
        h('div', null, h('dt', null, 'calls'), numbers.count),
        h('div', null, h('dt', null, 'errors'), numbers.errors),
      ),
    ),
    plot.node,
  );
  return {
    node,
    tick: plot.tick,
    redraw: plot.redraw,
    update(latency) {
      write(numbers.p50, milliseconds(latency.p50));
      write(numbers.p95, milliseconds(latency.p95));
      write(numbers.count, latency.count ?? 0);
      write(numbers.errors, latency.errors ?? 0);
      put(numbers.errors, 'class', latency.errors > 0 ? 'bad' : null);
      plot.update(latency);
    },
  };
}

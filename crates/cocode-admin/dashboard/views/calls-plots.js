// The latencies of all servers, as plots that move, or as a table for those who prefer numbers.
import { h, put, replace, sync, write } from '../lib/dom.js';
import { count, milliseconds, moment, percent } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { state, watch } from '../lib/store.js';
import { plain } from '../lib/text.js';
import { fittingSpan, plotCard } from '../parts/plot.js';

const TICK_MS = 1_000;
const MAX_PLOTS = 12;
const SPANS = [
  ['fit', 'As it fits'],
  ['60', '1 minute'],
  ['300', '5 minutes'],
  ['1800', '30 minutes'],
  ['3600', '1 hour'],
];

const lastOf = (latency) => moment(latency.recent.at(-1)?.at) ?? 0;

function tableRow(first) {
  const cells = ['calls', 'errors', 'p50', 'p95', 'p99'].map(() => h('td', { class: 'right tabular' }));
  const node = h(
    'tr',
    null,
    h('th', { scope: 'row' }, h('a', { href: placeOf(['servers', first.name]) }, plain(first.name, 80))),
    cells,
  );
  const update = (latency) => {
    const values = [
      count(latency.count),
      `${count(latency.errors)} (${percent(latency.errors, latency.count)})`,
      milliseconds(latency.p50),
      milliseconds(latency.p95),
      milliseconds(latency.p99),
    ];
    values.forEach((value, index) => write(cells[index], value));
  };
  update(first);
  return { node, update };
}

export function showPlots(outlet, signal) {
  const span = h(
    'select',
    { class: 'input', 'aria-label': 'Time shown', value: 'fit' },
    SPANS.map(([value, label]) => h('option', { value }, label)),
  );
  const grid = h('div', { class: 'plots' });
  const body = h('tbody');
  const table = h(
    'div',
    { class: 'table-frame', hidden: true },
    h(
      'table',
      { class: 'table' },
      h('caption', { class: 'hidden' }, 'Latencies of each server'),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          ['Server', 'Calls', 'Errors', 'p50', 'p95', 'p99'].map((word, index) =>
            h('th', { scope: 'col', class: index > 0 ? 'right' : null }, word),
          ),
        ),
      ),
      body,
    ),
  );
  const more = h('button', { type: 'button', class: 'button small', hidden: true });
  const key = h(
    'p',
    { class: 'legend' },
    h('span', { class: 'legend-dot' }, 'call'),
    h('span', { class: 'legend-cross' }, 'failed call'),
    h('span', { class: 'legend-p50' }, 'p50, half are faster'),
    h('span', { class: 'legend-p95' }, 'p95'),
  );
  const ways = ['Plots', 'Table'].map((word, index) =>
    h(
      'button',
      {
        type: 'button',
        class: 'segment',
        'aria-pressed': String(index === 0),
        on: { click: () => choose(index) },
      },
      word,
    ),
  );
  /** One span for all plots, so that they can be compared; looked for once for all of them. */
  let fitting = { at: 0, seconds: 0 };
  const seconds = () => {
    if (span.value !== 'fit') return Number(span.value);
    const at = Date.now();
    if (at - fitting.at > TICK_MS / 2)
      fitting = { at, seconds: fittingSpan([...state.latencies.values()], at) };
    return fitting.seconds;
  };
  const plots = new Map();
  let isAll = false;

  const choose = (chosen) => {
    ways.forEach((way, index) => put(way, 'aria-pressed', String(index === chosen)));
    grid.hidden = chosen !== 0;
    key.hidden = chosen !== 0;
    table.hidden = chosen !== 1;
  };
  const make = (latency) => {
    const plot = plotCard(
      plain(latency.name, 60),
      h(
        'h3',
        { class: 'plot-name' },
        h('a', { href: placeOf(['servers', latency.name]) }, plain(latency.name, 60)),
      ),
      { spanSeconds: seconds },
    );
    put(plot.node, 'data-server', plain(latency.name, 80));
    plots.set(latency.name, plot);
    plot.update(latency);
    return { node: plot.node, update: plot.update };
  };
  const update = () => {
    const used = [...state.latencies.values()].filter(
      (latency) => latency.count > 0 || latency.recent.length > 0,
    );
    // By name, so that nothing jumps; the busiest are chosen where there are too many.
    const chosen = isAll
      ? used
      : [...used].sort((one, other) => lastOf(other) - lastOf(one)).slice(0, MAX_PLOTS);
    const sorted = chosen.sort((one, other) => one.name.localeCompare(other.name, 'en'));
    sync(grid, sorted, (latency) => latency.name, make);
    for (const name of plots.keys()) if (!sorted.some((latency) => latency.name === name)) plots.delete(name);
    sync(
      body,
      [...used].sort((one, other) => one.name.localeCompare(other.name, 'en')),
      (latency) => latency.name,
      tableRow,
    );
    more.hidden = used.length <= MAX_PLOTS || isAll;
    write(more, `Show all ${used.length} servers`);
    section.hidden = used.length === 0;
    put(outlet, 'data-latencies', state.loaded.has('latencies') ? 'known' : 'unknown');
  };
  more.addEventListener('click', () => {
    isAll = true;
    update();
  });
  span.addEventListener('change', () => {
    for (const plot of plots.values()) plot.redraw();
  });
  const section = h(
    'section',
    { 'aria-label': 'Latencies', hidden: true },
    h(
      'div',
      { class: 'bar-line' },
      h('h2', { class: 'section-title' }, 'Latency'),
      key,
      h('span', { class: 'spacer' }),
      span,
      h('div', { class: 'segments', role: 'group', 'aria-label': 'How latencies are shown' }, ways),
    ),
    grid,
    table,
    more,
  );
  replace(outlet, section);
  watch(['latencies'], update, signal);
  const timer = setInterval(() => {
    for (const plot of plots.values()) plot.tick();
  }, TICK_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  update();
}

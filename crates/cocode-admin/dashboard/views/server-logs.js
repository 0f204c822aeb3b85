// What a server writes and logs, as it happens.
import { h, put, replace, write } from '../lib/dom.js';
import { get, path } from '../lib/api.js';
import { clock, count, plural } from '../lib/format.js';
import { onLog, onReload } from '../lib/loads.js';
import { plain, said, withoutColours } from '../lib/text.js';
import { loading, problemBox } from '../parts/notes.js';

const FIRST_LINES = 200;
const MAX_LINES = 2_000;
const NEAR_END = 24;

const STREAMS = [
  ['', 'Everything'],
  ['stderr', 'Standard error'],
  ['log', 'Log messages'],
  ['state', 'Changes of state'],
];
const LOUD = new Map([
  ['error', 'bad'],
  ['critical', 'bad'],
  ['alert', 'bad'],
  ['emergency', 'bad'],
  ['warning', 'warn'],
  ['warn', 'warn'],
]);

function lineNode(line) {
  const tone = LOUD.get(line.level) ?? (line.stream === 'state' ? 'info' : '');
  return h(
    'div',
    { class: `log-line ${tone}`.trim(), 'data-stream': plain(line.stream, 20) },
    h('time', null, clock(line.at)),
    h('span', { class: 'log-kind' }, plain(line.level ?? line.stream, 12)),
    said(withoutColours(line.text), { class: 'log-text', limit: 2_000 }),
  );
}

/** Lines that are the same in all of this are one line that came twice: in the list, and as an event. */
const keyOf = (line) => JSON.stringify([line.at, line.stream, line.text]);

export function showLogs(panel, { name, signal }) {
  const box = h('div', {
    class: 'logs',
    role: 'log',
    'aria-live': 'off',
    'aria-label': 'Log of the server',
    tabindex: '0',
  });
  const stream = h(
    'select',
    { class: 'input', 'aria-label': 'Which lines' },
    STREAMS.map(([value, label]) => h('option', { value }, label)),
  );
  const filter = h('input', {
    type: 'search',
    class: 'input filter',
    placeholder: 'Filter lines',
    'aria-label': 'Filter lines',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const follow = h('input', {
    type: 'checkbox',
    class: 'switch',
    role: 'switch',
    checked: true,
    id: 'follow-log',
  });
  const number = h('span', { class: 'faint small' });
  const nothing = h('p', { class: 'faint logs-nothing', hidden: true });
  const fits = (line) => {
    const isStream = stream.value === '' || stream.value === line.stream;
    return (
      isStream &&
      String(line.text ?? '')
        .toLowerCase()
        .includes(filter.value.toLowerCase())
    );
  };
  const trouble = h('div', { class: 'trouble' });
  let lines = [];
  let isLoaded = false;
  const toEnd = () => {
    if (follow.checked) box.scrollTop = box.scrollHeight;
  };
  const tally = () => {
    const shown = box.children.length;
    const all = plural(lines.length, 'line');
    write(number, shown === lines.length ? all : `${count(shown)} of ${all}`);
    nothing.hidden = shown > 0 || !isLoaded;
    box.hidden = shown === 0;
    write(nothing, lines.length > 0 ? 'No line fits the filter.' : 'It has not said anything yet.');
  };
  const redraw = () => {
    replace(box, lines.filter(fits).map(lineNode));
    tally();
    toEnd();
  };
  let waiting = [];
  let timer = null;
  /** Lines of the list whose events may still come. */
  let known = new Set();
  const flush = () => {
    timer = null;
    // Before the list is there, they would stand above it.
    if (!isLoaded) return;
    lines = [...lines, ...waiting].slice(-MAX_LINES);
    box.append(...waiting.filter(fits).map(lineNode));
    waiting = [];
    while (box.children.length > MAX_LINES) box.firstElementChild.remove();
    tally();
    toEnd();
  };
  onLog((line) => {
    if (line.server !== name || known.delete(keyOf(line))) return;
    waiting = [...waiting.slice(1 - MAX_LINES), line];
    timer ??= setTimeout(flush, 60);
  }, signal);
  // Whoever scrolls up wants to read; at the end it goes on by itself.
  box.addEventListener('scroll', () => {
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
    if (follow.checked !== isAtEnd) follow.checked = isAtEnd;
  });
  follow.addEventListener('change', toEnd);
  stream.addEventListener('change', redraw);
  filter.addEventListener('input', redraw);
  replace(
    panel,
    h(
      'div',
      { class: 'bar-line' },
      filter,
      stream,
      h('label', { class: 'switch-line', for: 'follow-log' }, follow, h('span', null, 'Follow')),
      number,
    ),
    trouble,
    nothing,
    box,
  );
  const load = async () => {
    try {
      const wanted = String(Math.min(MAX_LINES, Math.max(FIRST_LINES, lines.length)));
      const answer = await get(path('servers', name, 'logs'), { query: { lines: wanted }, signal });
      const found = Array.isArray(answer?.lines) ? answer.lines.slice(-MAX_LINES) : [];
      const keys = new Set(found.map(keyOf));
      // What has come meanwhile is in the list already, or newer than it.
      waiting = waiting.filter((line) => !keys.delete(keyOf(line)));
      known = keys;
      lines = found;
      isLoaded = true;
      replace(trouble);
      put(box, 'data-loaded', 'yes');
      redraw();
      flush();
    } catch (problem) {
      if (!signal.aborted) replace(trouble, problemBox(problem));
    }
  };
  onReload(load, signal);
  replace(trouble, loading());
  load();
}

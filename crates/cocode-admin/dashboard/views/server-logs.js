// What a server writes and logs, as it happens.
import { h, put, replace, write } from '../lib/dom.js';
import { get, path } from '../lib/api.js';
import { clock, count } from '../lib/format.js';
import { onLog } from '../lib/loads.js';
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
  const fits = (line) => {
    const isStream = stream.value === '' || stream.value === line.stream;
    return (
      isStream &&
      String(line.text ?? '')
        .toLowerCase()
        .includes(filter.value.toLowerCase())
    );
  };
  let lines = [];
  const toEnd = () => {
    if (follow.checked) box.scrollTop = box.scrollHeight;
  };
  const tally = () => write(number, `${count(box.children.length)} of ${count(lines.length)} lines`);
  const redraw = () => {
    replace(box, lines.filter(fits).map(lineNode));
    tally();
    toEnd();
  };
  let waiting = [];
  let timer = null;
  const flush = () => {
    timer = null;
    lines = [...lines, ...waiting].slice(-MAX_LINES);
    box.append(...waiting.filter(fits).map(lineNode));
    waiting = [];
    while (box.children.length > MAX_LINES) box.firstElementChild.remove();
    tally();
    toEnd();
  };
  onLog((line) => {
    if (line.server !== name) return;
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
    box,
  );
  replace(box, loading());
  get(path('servers', name, 'logs'), { query: { lines: String(FIRST_LINES) }, signal }).then(
    (answer) => {
      lines = Array.isArray(answer?.lines) ? answer.lines.slice(-MAX_LINES) : [];
      put(box, 'data-loaded', 'yes');
      redraw();
      if (lines.length === 0) replace(box, h('p', { class: 'faint' }, 'It has not said anything yet.'));
    },
    (problem) => {
      if (!signal.aborted) replace(box, problemBox(problem));
    },
  );
}

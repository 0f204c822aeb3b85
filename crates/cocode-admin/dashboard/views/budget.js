// What tools cost: how much of a context window their definitions take, by server and by tool.
import { h, put, replace, sync, write } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { count, percent, short } from '../lib/format.js';
import { onReload } from '../lib/loads.js';
import { placeOf } from '../lib/router.js';
import { watch } from '../lib/store.js';
import { plain } from '../lib/text.js';
import { serverLine } from '../parts/budget-lines.js';
import { empty, loading, problemBox } from '../parts/notes.js';
import { windowChart } from '../parts/window-chart.js';

const WINDOWS = [32_000, 64_000, 128_000, 200_000, 256_000, 400_000, 1_000_000, 2_000_000];
const STORED = 'cocode.window';
const PAUSE_MS = 1_000;

/** Parts of a window that nobody minds, and that everybody should. */
const FINE = 0.1;
const MUCH = 0.25;

function storedWindow() {
  try {
    return Number(localStorage.getItem(STORED)) || null;
  } catch {
    return null;
  }
}

function keepWindow(value) {
  try {
    localStorage.setItem(STORED, String(value));
  } catch {
    // Without storage the choice holds as long as the page does.
  }
}

function table(servers, total, window) {
  return h(
    'div',
    { class: 'table-frame' },
    h(
      'table',
      { class: 'table' },
      h('caption', { class: 'hidden' }, 'Tokens of the tools of each server'),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          ['Server', 'Tools', 'Tokens', 'Of the window'].map((word, index) =>
            h('th', { scope: 'col', class: index > 0 ? 'right' : null }, word),
          ),
        ),
      ),
      h(
        'tbody',
        null,
        servers.map((server) =>
          h(
            'tr',
            null,
            h(
              'th',
              { scope: 'row' },
              h('a', { href: placeOf(['servers', server.name, 'tools']) }, plain(server.name, 80)),
            ),
            h('td', { class: 'right tabular' }, count(server.tools)),
            h('td', { class: 'right tabular' }, count(server.tokens)),
            h('td', { class: 'right tabular' }, percent(server.tokens, window)),
          ),
        ),
      ),
      h(
        'tfoot',
        null,
        h(
          'tr',
          null,
          h('th', { scope: 'row' }, 'Together'),
          h(
            'td',
            { class: 'right tabular' },
            count(servers.reduce((sum, server) => sum + (server.tools ?? 0), 0)),
          ),
          h('td', { class: 'right tabular' }, count(total)),
          h('td', { class: 'right tabular' }, percent(total, window)),
        ),
      ),
    ),
  );
}

/** What to make of it: `search` says when models search by themselves, if that depends on what tools cost. */
function advice(total, window, search) {
  const taken = `The tools take ${percent(total, window)} of the window`;
  if (total > window)
    return 'The tools do not fit into the window at all. Let models search for tools, or serve fewer.';
  if (search && window >= search.leastWindow && total >= (window * search.percent) / 100)
    return `${taken}: models with such a window search for tools by themselves, and see fewer at first.`;
  const share = total / window;
  if (share < FINE) return `${taken}. That is fine.`;
  if (share < MUCH)
    return `${taken} before anybody has asked anything. Tool search would save most of it.`;
  return `${taken}. Let models search for tools, or serve fewer.`;
}

/** When models search by themselves, as the API says it; null if that does not depend on what tools cost. */
const searchOf = ({ search }) =>
  Number.isFinite(search?.percent) && Number.isFinite(search?.leastWindow) ? search : null;

function mount(outlet, _place, signal) {
  const choice = h('select', { class: 'input', id: 'window' });
  const place = h('div', null, loading());
  const ways = ['Chart', 'Table'].map((word, index) =>
    h(
      'button',
      {
        type: 'button',
        class: 'segment',
        'aria-pressed': String(index === 0),
        on: {
          click: () => {
            isTable = index === 1;
            draw();
          },
        },
      },
      word,
    ),
  );
  let isTable = false;
  let budget = null;
  let isTroubled = false;
  const size = () => Number(choice.value) || 200_000;

  const fillChoice = () => {
    const known = [...new Set([...WINDOWS, budget.window, storedWindow()])]
      .filter((value) => Number.isFinite(value) && value > 0)
      .sort((one, other) => one - other);
    replace(
      choice,
      known.map((value) =>
        h(
          'option',
          { value: String(value) },
          `${short(value)} tokens${value === budget.window ? ' (configured)' : ''}`,
        ),
      ),
    );
    choice.value = String(storedWindow() ?? budget.window ?? 200_000);
    if (choice.value === '') choice.value = '200000';
  };
  // Kept as long as the view is there, so that what is opened stays open and the focus stays where it is.
  const total = h('strong');
  const whole = h('span');
  const chart = h('div');
  const words = h('p', { class: 'advice' });
  const list = h('ul', { class: 'card budget-list', 'aria-label': 'Tokens of each server' });
  const numbers = h('div');
  const shown = h(
    'div',
    { hidden: true },
    h(
      'div',
      { class: 'card budget-window' },
      h('p', { class: 'budget-total' }, total, whole),
      chart,
      words,
    ),
    list,
    numbers,
  );
  const draw = () => {
    ways.forEach((way, index) => put(way, 'aria-pressed', String((index === 1) === isTable)));
    if (!budget) return;
    const servers = budget.servers
      .filter((server) => server.tokens > 0)
      .sort((one, other) => other.tokens - one.tokens);
    shown.hidden = servers.length === 0;
    replace(
      place,
      servers.length === 0 &&
        empty('gauge', 'Nothing to count', 'The tools of a server are weighed once it is ready.'),
    );
    if (servers.length === 0) return;
    const window = size();
    const search = searchOf(budget);
    write(total, count(budget.total));
    write(whole, ` of ${count(window)} tokens`);
    replace(chart, windowChart(servers, { total: budget.total, window, search }));
    write(words, advice(budget.total, window, search));
    const highest = servers[0].tokens;
    sync(
      list,
      servers.map((server) => ({ ...server, highest, window })),
      (server) => server.name,
      (server) => serverLine(server, signal),
    );
    list.hidden = isTable;
    replace(numbers, isTable && table(servers, budget.total, window));
  };
  const load = async () => {
    try {
      const answer = await get('budget', { signal });
      const servers = (Array.isArray(answer?.servers) ? answer.servers : []).filter(
        (server) => typeof server?.name === 'string',
      );
      const isFirst = budget === null;
      const isSame = JSON.stringify(budget) === JSON.stringify({ ...answer, servers });
      budget = { ...answer, servers };
      if (isFirst) fillChoice();
      if (!isSame || isTroubled) draw();
      isTroubled = false;
    } catch (problem) {
      if (signal.aborted) return;
      isTroubled = true;
      replace(place, problemBox(problem));
    }
  };
  choice.addEventListener('change', () => {
    keepWindow(choice.value);
    draw();
  });
  replace(
    outlet,
    h(
      'div',
      { class: 'view-head' },
      h(
        'div',
        null,
        h('h1', { tabindex: '-1' }, 'Budget'),
        h('p', { class: 'lead' }, 'What the definitions of tools cost a model.'),
      ),
      h(
        'div',
        { class: 'view-tools' },
        h('label', { for: 'window', class: 'label' }, 'Context window'),
        choice,
        h('div', { class: 'segments', role: 'group', 'aria-label': 'How the budget is shown' }, ways),
      ),
    ),
    place,
    shown,
  );
  let timer = null;
  const loadSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(load, PAUSE_MS);
  };
  watch(['servers'], loadSoon, signal);
  onReload(loadSoon, signal);
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  load();
}

export const budgetView = { nav: 'budget', title: () => 'Budget', mount };

// What tools cost: how much of a context window their definitions take, by server and by tool.
import { h, put, replace, write } from '../lib/dom.js';
import { get, path } from '../lib/api.js';
import { count, percent, plural, short } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { watch } from '../lib/store.js';
import { plain } from '../lib/text.js';
import { bar } from '../parts/bar.js';
import { empty, loading, problemBox } from '../parts/notes.js';
import { windowChart } from '../parts/window-chart.js';

const WINDOWS = [32_000, 64_000, 128_000, 200_000, 256_000, 400_000, 1_000_000, 2_000_000];
const STORED = 'cocode.window';
const MAX_TOOLS = 200;
const PAUSE_MS = 1_000;

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

/** The tools of a server, each with its bar, asked for when they are opened. */
function toolBars(server, signal, window) {
  const place = h('div', { class: 'budget-tools' });
  let isAsked = false;
  const show = async () => {
    if (isAsked) return;
    isAsked = true;
    replace(place, loading());
    try {
      const { tools } = await get(path('servers', server.name, 'tools'), { signal });
      const sorted = [...(Array.isArray(tools) ? tools : [])].sort(
        (one, other) => (other.tokens ?? 0) - (one.tokens ?? 0),
      );
      const highest = sorted[0]?.tokens ?? 1;
      replace(
        place,
        h(
          'ul',
          null,
          sorted.slice(0, MAX_TOOLS).map((tool) => {
            const size = bar(4);
            size.update((tool.tokens ?? 0) / highest);
            return h(
              'li',
              { class: 'budget-tool' },
              h(
                'a',
                { class: 'mono', href: placeOf(['servers', server.name, 'tools', tool.name]) },
                plain(tool.name, 80),
              ),
              size.node,
              h('span', { class: 'tabular' }, count(tool.tokens)),
              h('span', { class: 'tabular faint' }, percent(tool.tokens, window())),
            );
          }),
        ),
        sorted.length > MAX_TOOLS && h('p', { class: 'faint small' }, `${sorted.length - MAX_TOOLS} more`),
      );
    } catch (problem) {
      isAsked = false;
      if (!signal.aborted) replace(place, problemBox(problem));
    }
  };
  return { place, show };
}

function serverLine(server, { highest, signal, window }) {
  const size = bar(10);
  size.update(server.tokens / highest);
  const { place, show } = toolBars(server, signal, window);
  const details = h(
    'details',
    { class: 'budget-server' },
    h(
      'summary',
      null,
      h('span', { class: 'budget-name' }, plain(server.name, 80)),
      size.node,
      h('span', { class: 'tabular' }, count(server.tokens)),
      h('span', { class: 'tabular faint' }, percent(server.tokens, window())),
      h('span', { class: 'faint small budget-count' }, plural(server.tools, 'tool')),
    ),
    place,
  );
  details.addEventListener('toggle', () => {
    if (details.open) show();
  });
  return h('li', null, details);
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

function advice(total, window) {
  const share = total / window;
  if (share < 0.1) return `The tools take ${percent(total, window)} of the window. That is fine.`;
  if (share < 0.25)
    return `The tools take ${percent(total, window)} of the window before anybody has asked anything. Tool search would save most of it.`;
  if (share <= 1)
    return `The tools take ${percent(total, window)} of the window. Let models search for tools, or serve fewer.`;
  return 'The tools do not fit into the window at all. Let models search for tools, or serve fewer.';
}

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
  const draw = () => {
    ways.forEach((way, index) => put(way, 'aria-pressed', String((index === 1) === isTable)));
    if (!budget) return;
    const servers = budget.servers
      .filter((server) => server.tokens > 0)
      .sort((one, other) => other.tokens - one.tokens);
    if (servers.length === 0) {
      replace(
        place,
        empty('gauge', 'Nothing to count', 'The tools of a server are weighed once it is ready.'),
      );
      return;
    }
    const highest = servers[0].tokens;
    const words = h('p', { class: 'advice' });
    write(words, advice(budget.total, size()));
    replace(
      place,
      h(
        'div',
        { class: 'card budget-window' },
        h(
          'p',
          { class: 'budget-total' },
          h('strong', null, count(budget.total)),
          ` of ${count(size())} tokens`,
        ),
        windowChart(servers, budget.total, size()),
        words,
      ),
      isTable
        ? table(servers, budget.total, size())
        : h(
            'ul',
            { class: 'card budget-list', 'aria-label': 'Tokens of each server' },
            servers.map((server) => serverLine(server, { highest, signal, window: size })),
          ),
    );
  };
  const load = async () => {
    try {
      const answer = await get('budget', { signal });
      const servers = (Array.isArray(answer?.servers) ? answer.servers : []).filter(
        (server) => typeof server?.name === 'string',
      );
      const isFirst = budget === null;
      budget = { ...answer, servers };
      if (isFirst) fillChoice();
      draw();
    } catch (problem) {
      if (!signal.aborted) replace(place, problemBox(problem));
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
  );
  let timer = null;
  watch(
    ['servers'],
    () => {
      clearTimeout(timer);
      timer = setTimeout(load, PAUSE_MS);
    },
    signal,
  );
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  load();
}

export const budgetView = { nav: 'budget', title: () => 'Budget', mount };

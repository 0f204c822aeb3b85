// Search over the tools of all servers, by what they are for.
import { h, put, replace, sync } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { roving } from '../lib/keys.js';
import { onReload } from '../lib/loads.js';
import { placeOf } from '../lib/router.js';
import { state, watch } from '../lib/store.js';
import { icon } from '../parts/icons.js';
import { empty, loading, problemBox } from '../parts/notes.js';
import { toolPlace, toolWords } from '../parts/results.js';

const PAUSE_MS = 150;

/** Servers that come up together change the list together. */
const SETTLE_MS = 500;
const LIMIT = 50;

/** Changes whenever there may be other tools than before. */
const offered = () =>
  JSON.stringify([...state.servers.values()].map((server) => [server.name, server.state, server.tools]));

/** A row for each tool; one that stays keeps the focus. */
function showRows(list, tools, query) {
  sync(
    list,
    tools,
    (tool) => JSON.stringify([tool.server, tool.name, tool.description, tool.tokens, query]),
    (tool) => ({
      node: h('li', null, h('a', { class: 'found', href: toolPlace(tool) }, toolWords(tool, query))),
    }),
  );
}

function mount(outlet, place, signal) {
  const box = h('input', {
    type: 'search',
    class: 'input search-box',
    'data-search': '',
    placeholder: 'What should the tool do?',
    'aria-label': 'Search tools',
    value: place.query.get('q') ?? '',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const status = h('p', { class: 'faint small', role: 'status' });
  const list = h('ol', { class: 'found-list card', hidden: true, 'aria-label': 'Tools, best first' });
  const nothing = h('div');
  let asked = null;
  let timer = null;

  const show = (tools, query) => {
    showRows(list, tools, query);
    list.hidden = tools.length === 0;
    status.textContent =
      tools.length === 0
        ? ''
        : query === ''
          ? `${plural(tools.length, 'tool')}${tools.length === LIMIT ? ' of more: search to see others' : ''}`
          : `${plural(tools.length, 'tool')}, best first`;
    replace(
      nothing,
      tools.length === 0 &&
        (query === ''
          ? empty('tool', 'No tools', 'They are here once a server is ready.')
          : empty(
              'search',
              'No tool fits',
              'Describe in other words what it should do and what it works on.',
            )),
    );
  };
  const ask = async () => {
    asked?.abort();
    asked = new AbortController();
    const mine = AbortSignal.any([signal, asked.signal]);
    const query = box.value.trim();
    history.replaceState(null, '', placeOf(['tools'], query ? { q: query } : undefined));
    put(list, 'aria-busy', 'true');
    try {
      const { tools } = await get('tools', { query: { query, limit: String(LIMIT) }, signal: mine });
      show(
        (Array.isArray(tools) ? tools : [])
          .filter((tool) => typeof tool?.name === 'string' && typeof tool.server === 'string')
          .slice(0, LIMIT),
        query,
      );
    } catch (problem) {
      if (!mine.aborted) replace(nothing, problemBox(problem));
    }
    put(list, 'aria-busy', null);
  };
  box.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  box.addEventListener('keydown', (event) => {
    const first = list.querySelector('a');
    if (!first || (event.key !== 'ArrowDown' && event.key !== 'Enter')) return;
    event.preventDefault();
    if (event.key === 'Enter') first.click();
    else first.focus();
  });
  roving(list, 'a.found');
  list.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowUp' && event.target === list.querySelector('a')) box.focus();
  });
  replace(
    outlet,
    h(
      'div',
      { class: 'view-head' },
      h(
        'div',
        null,
        h('h1', { tabindex: '-1' }, 'Tools'),
        h('p', { class: 'lead' }, 'Search all servers the way models do.'),
      ),
    ),
    h('div', { class: 'search-line' }, icon('search'), box),
    status,
    list,
    nothing,
  );
  replace(nothing, loading());
  ask();
  const askAgain = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, SETTLE_MS);
  };
  let known = offered();
  const onServers = () => {
    const now = offered();
    if (now === known) return;
    known = now;
    askAgain();
  };
  watch(['servers'], onServers, signal);
  onReload(askAgain, signal);
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
}

export const toolsView = { nav: 'tools', title: () => 'Tools', mount };

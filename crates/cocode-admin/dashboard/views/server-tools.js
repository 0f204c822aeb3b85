// The tools of a server: what each costs, what it says of itself, and trying it.
import { h, put, replace, sync, write } from '../lib/dom.js';
import { get, path } from '../lib/api.js';
import { count, plural, short } from '../lib/format.js';
import { roving } from '../lib/keys.js';
import { placeOf } from '../lib/router.js';
import { state, watch } from '../lib/store.js';
import { plain } from '../lib/text.js';
import { bar } from '../parts/bar.js';
import { empty, loading, problemBox } from '../parts/notes.js';
import { showTool } from './tool.js';

const MAX_SHOWN = 500;

function row(name, highest) {
  return (first) => {
    const size = bar(4);
    const cost = h('span', { class: 'tool-cost' });
    const about = h('span', { class: 'tool-about', dir: 'auto' });
    const verdict = h('span', { class: 'tag', hidden: true });
    const link = h(
      'a',
      { class: 'tool-row', href: placeOf(['servers', name, 'tools', first.name]) },
      h('span', { class: 'tool-name mono' }, plain(first.name, 100), verdict),
      about,
      size.node,
      cost,
    );
    const update = (tool) => {
      size.update((tool.tokens ?? 0) / highest());
      write(cost, `${short(tool.tokens)} tokens`);
      write(about, plain(tool.title ?? tool.description ?? '', 90));
      verdict.hidden = tool.verdict === 'allow' || tool.verdict === undefined;
      write(verdict, tool.verdict === 'ask' ? 'asks' : tool.verdict === 'deny' ? 'denied' : '');
      put(verdict, 'class', `tag ${tool.verdict === 'deny' ? 'bad' : 'warn'}`);
    };
    update(first);
    return { node: h('li', null, link), update };
  };
}

export function showTools(panel, { name, place, signal }) {
  const filter = h('input', {
    type: 'search',
    class: 'input filter',
    placeholder: 'Filter tools',
    'aria-label': 'Filter tools',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const total = h('p', { class: 'faint small' });
  const list = h('ul', { class: 'tool-list' });
  const detail = h('div', { class: 'tool-detail' });
  const frame = h('div', { class: 'tools' }, h('div', { class: 'tools-side' }, filter, total, list), detail);
  roving(list, '.tool-row');
  let tools = null;
  let chosen = null;
  let toolEnded = null;
  const make = row(name, () => Math.max(...(tools ?? []).map((tool) => tool.tokens ?? 0), 1));

  const update = () => {
    if (tools === null) return;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = tools.filter((tool) =>
      words.every((word) =>
        `${tool.name} ${tool.title ?? ''} ${tool.description ?? ''}`.toLowerCase().includes(word),
      ),
    );
    sync(list, fits.slice(0, MAX_SHOWN), (tool) => tool.name, make);
    const sum = tools.reduce((all, tool) => all + (tool.tokens ?? 0), 0);
    write(
      total,
      `${fits.length < tools.length ? `${count(fits.length)} of ` : ''}${plural(tools.length, 'tool')}, ${count(sum)} tokens together${fits.length > MAX_SHOWN ? `; the first ${MAX_SHOWN} are shown` : ''}`,
    );
    for (const link of list.querySelectorAll('.tool-row'))
      put(
        link,
        'aria-current',
        link.getAttribute('href') === placeOf(['servers', name, 'tools', chosen ?? '']) ? 'true' : null,
      );
  };

  const choose = (next) => {
    const wanted = next.segments[3] ?? null;
    put(frame, 'data-chosen', wanted === null ? 'no' : 'yes');
    if (tools === null || (wanted === chosen && detail.hasChildNodes())) return;
    chosen = wanted;
    toolEnded?.abort();
    toolEnded = new AbortController();
    update();
    const tool = tools.find((one) => one.name.toWellFormed() === chosen);
    if (tool) showTool(detail, { server: name, tool, signal: toolEnded.signal });
    else
      replace(
        detail,
        chosen === null
          ? h('p', { class: 'faint placeholder' }, 'Choose a tool to read what it does, and to try it.')
          : empty(
              'tool',
              'There is no such tool',
              h('a', { href: placeOf(['servers', name, 'tools']) }, 'All tools of the server'),
            ),
      );
    if (tool && next !== place)
      detail.querySelector('h2')?.focus({ preventScroll: matchMedia('(min-width: 900px)').matches });
  };

  const load = async () => {
    try {
      // A server that was never ready has no list, and asking for it would be an error.
      const { state: now, tools: known } = state.servers.get(name) ?? {};
      const answer =
        now === 'ready' || known > 0 ? await get(path('servers', name, 'tools'), { signal }) : null;
      tools = (Array.isArray(answer?.tools) ? answer.tools : []).filter(
        (tool) => typeof tool?.name === 'string',
      );
      if (tools.length === 0) {
        replace(
          panel,
          empty(
            'tool',
            'No tools',
            state.servers.get(name)?.state === 'ready'
              ? 'The server offers none.'
              : 'They are known once the server is ready.',
          ),
        );
        return;
      }
      if (!frame.isConnected) replace(panel, frame);
      update();
      choose(current);
    } catch (problem) {
      if (!signal.aborted) replace(panel, problemBox(problem));
    }
  };

  let current = place;
  let known = null;
  const stamp = () =>
    JSON.stringify([
      state.servers.get(name)?.state,
      state.servers.get(name)?.tools,
      state.servers.get(name)?.tokens,
    ]);
  watch(
    ['servers'],
    () => {
      if (known !== stamp()) load();
      known = stamp();
    },
    signal,
  );
  known = stamp();
  signal.addEventListener('abort', () => toolEnded?.abort(), { once: true });
  filter.addEventListener('input', update);
  replace(panel, loading());
  load();
  return (next) => {
    current = next;
    choose(next);
  };
}

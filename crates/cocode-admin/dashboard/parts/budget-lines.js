// What the tools of each server cost, a line for each server, with a line for each of its tools below.
import { h, replace, write } from '../lib/dom.js';
import { get, path } from '../lib/api.js';
import { count, percent, plural } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { plain } from '../lib/text.js';
import { bar } from './bar.js';
import { loading, problemBox } from './notes.js';

const MAX_TOOLS = 200;

function toolLine(server, tool, { highest, window }) {
  const size = bar(4);
  size.update((tool.tokens ?? 0) / highest);
  return h(
    'li',
    { class: 'budget-tool' },
    h('a', { class: 'mono', href: placeOf(['servers', server, 'tools', tool.name]) }, plain(tool.name, 80)),
    size.node,
    h('span', { class: 'tabular' }, count(tool.tokens)),
    h('span', { class: 'tabular faint' }, percent(tool.tokens, window)),
  );
}

/** The tools of a server, each with its bar, asked for when they are opened. */
function toolBars(name, signal) {
  const place = h('div', { class: 'budget-tools' });
  let tools = null;
  const draw = (window) => {
    const highest = tools[0]?.tokens ?? 1;
    replace(
      place,
      h(
        'ul',
        null,
        tools.slice(0, MAX_TOOLS).map((tool) => toolLine(name, tool, { highest, window })),
      ),
      tools.length > MAX_TOOLS && h('p', { class: 'faint small' }, `${tools.length - MAX_TOOLS} more`),
    );
  };
  const load = async (window) => {
    if (tools === null) replace(place, loading());
    try {
      const answer = await get(path('servers', name, 'tools'), { signal });
      tools = [...(Array.isArray(answer?.tools) ? answer.tools : [])].sort(
        (one, other) => (other.tokens ?? 0) - (one.tokens ?? 0),
      );
      draw(window());
    } catch (problem) {
      if (!signal.aborted) replace(place, problemBox(problem));
    }
  };
  return {
    place,
    load,
    /** Shows what is known for another window. */
    redraw(window) {
      if (tools !== null) draw(window);
    },
  };
}

/** A line that can be opened: `update({ name, tokens, tools, highest, window })`. It stays open when it changes. */
export function serverLine(first, signal) {
  let server = first;
  const size = bar(10);
  const tokens = h('span', { class: 'tabular' });
  const share = h('span', { class: 'tabular faint' });
  const number = h('span', { class: 'faint small budget-count' });
  const tools = toolBars(first.name, signal);
  let asked = null;
  const details = h(
    'details',
    { class: 'budget-server' },
    h(
      'summary',
      null,
      h('span', { class: 'budget-name' }, plain(first.name, 80)),
      size.node,
      tokens,
      share,
      number,
    ),
    tools.place,
  );
  /** Asks for the tools unless they are those that are known. */
  const ask = () => {
    const stamp = `${server.tokens} ${server.tools}`;
    if (!details.open || stamp === asked) return;
    asked = stamp;
    tools.load(() => server.window);
  };
  details.addEventListener('toggle', ask);
  const update = (next) => {
    const isOtherWindow = next.window !== server.window;
    server = next;
    size.update(next.tokens / next.highest);
    write(tokens, count(next.tokens));
    write(share, percent(next.tokens, next.window));
    write(number, plural(next.tools, 'tool'));
    if (isOtherWindow) tools.redraw(next.window);
    ask();
  };
  update(first);
  return { node: h('li', null, details), update };
}

// A context window as one long bar, and what the tools of each server take of it.
import { h } from '../lib/dom.js';
import { percent, short } from '../lib/format.js';
import { plain } from '../lib/text.js';

const MAX_PARTS = 30;

/** The parts in order, those beyond the bounds together. */
function parts(servers) {
  if (servers.length <= MAX_PARTS) return servers;
  const rest = servers.slice(MAX_PARTS - 1);
  return [
    ...servers.slice(0, MAX_PARTS - 1),
    { name: `${rest.length} others`, tokens: rest.reduce((sum, server) => sum + server.tokens, 0) },
  ];
}

/** Where something stands, in percent of the bar. */
function mark(share, kind) {
  const node = h('span', { class: `window-mark ${kind}` });
  node.style.left = `${share * 100}%`;
  return node;
}

/** `search` says from how many percent of a window on, and of which windows, models search by themselves. */
export function windowChart(servers, { total, window, search }) {
  const isSearched = search !== null && window >= search.leastWindow;
  const all = Math.max(total, window);
  const shown = parts(servers);
  const words = shown
    .slice(0, 8)
    .map((server) => `${plain(server.name, 40)} ${percent(server.tokens, window)}`);
  const bar = h('div', {
    class: 'window-chart',
    role: 'img',
    'aria-label': `${percent(total, window)} of the window is taken: ${words.join(', ')}`,
  });
  for (const server of shown) {
    const name = plain(server.name, 60);
    const part = h(
      'div',
      {
        class: 'window-part',
        title: `${name}: ${short(server.tokens)} tokens, ${percent(server.tokens, window)}`,
      },
      h('span', null, name),
    );
    part.style.width = `${(server.tokens / all) * 100}%`;
    bar.append(part);
  }
  if (isSearched) bar.append(mark(((window / all) * search.percent) / 100, 'search'));
  if (total > window) bar.append(mark(window / all, 'end'));
  return h(
    'div',
    { class: 'window-frame' },
    bar,
    h(
      'p',
      { class: 'legend' },
      h('span', { class: 'legend-part' }, 'a server each'),
      h('span', { class: 'legend-free' }, 'free'),
      isSearched &&
        h(
          'span',
          { class: 'legend-search' },
          `${percent(search.percent, 100)}: tool search begins by itself`,
        ),
      total > window && h('span', { class: 'legend-end' }, 'end of the window'),
    ),
  );
}

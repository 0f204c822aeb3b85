// A context window as one long bar, and what the tools of each server take of it.
import { h, svg } from '../lib/dom.js';
import { percent, short } from '../lib/format.js';
import { plain } from '../lib/text.js';

const WIDTH = 1_000;
const HEIGHT = 34;
const GAP = 2;
const MAX_PARTS = 30;
/** From this share on, cocode lets models search for tools by itself. */
const SEARCH_SHARE = 0.1;

/** The parts in order, those beyond the bounds together. */
function parts(servers) {
  if (servers.length <= MAX_PARTS) return servers;
  const rest = servers.slice(MAX_PARTS - 1);
  return [...servers.slice(0, MAX_PARTS - 1), { name: `${rest.length} others`, tokens: rest.reduce((sum, server) => sum + server.tokens, 0) }];
}

export function windowChart(servers, total, window) {
  const all = Math.max(total, window);
  const shown = parts(servers);
  const picture = svg('svg', { class: 'window-chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${percent(total, window)} of the window is taken: ${shown.slice(0, 8).map((server) => `${plain(server.name, 40)} ${percent(server.tokens, window)}`).join(', ')}` });
  picture.append(svg('rect', { class: 'window-track', width: WIDTH, height: HEIGHT }));
  let at = 0;
  shown.forEach((server, index) => {
    const width = (server.tokens / all) * WIDTH;
    const name = `${plain(server.name, 60)}: ${short(server.tokens)} tokens, ${percent(server.tokens, window)}`;
    picture.append(svg('rect', { class: `window-part ${index % 2 ? 'odd' : 'even'}`, x: at, y: 0, width: Math.max(1, width - (width > 4 * GAP ? GAP : 0)), height: HEIGHT }, svg('title', null, name)));
    at += width;
  });
  const marks = svg('g', { class: 'window-marks' }, svg('line', { x1: (window / all) * SEARCH_SHARE * WIDTH, x2: (window / all) * SEARCH_SHARE * WIDTH, y1: 0, y2: HEIGHT, class: 'mark-search' }));
  if (total > window) marks.append(svg('line', { x1: (window / all) * WIDTH, x2: (window / all) * WIDTH, y1: 0, y2: HEIGHT, class: 'mark-end' }));
  picture.append(marks);
  return h('div', { class: 'window-frame' }, picture, h('p', { class: 'legend' }, h('span', { class: 'legend-part' }, 'a server each'), h('span', { class: 'legend-free' }, 'free'), h('span', { class: 'legend-search' }, '10%: tool search begins by itself'), total > window && h('span', { class: 'legend-end' }, 'end of the window')));
}

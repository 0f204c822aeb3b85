// Tools that a search has found, in a row each, with the words of the search marked.
import { h } from '../lib/dom.js';
import { short } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { plain, visible } from '../lib/text.js';
import { icon } from './icons.js';

const MAX_DESCRIPTION = 220;

/** A text with the words of a query marked; only letters and digits are looked for, and no pattern is made of them. */
export function marked(text, query) {
  const words = query
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1)
    .slice(0, 8);
  const lower = text.toLowerCase();
  const fragment = document.createDocumentFragment();
  // Letters whose small form has another length would shift the marks.
  if (words.length === 0 || lower.length !== text.length) {
    fragment.append(visible(text));
    return fragment;
  }
  let at = 0;
  while (at < text.length) {
    let next = -1;
    let size = 0;
    for (const word of words) {
      const found = lower.indexOf(word, at);
      if (found >= 0 && (next < 0 || found < next || (found === next && word.length > size))) {
        next = found;
        size = word.length;
      }
    }
    if (next < 0) break;
    fragment.append(visible(text.slice(at, next)), h('mark', null, visible(text.slice(next, next + size))));
    at = next + size;
  }
  fragment.append(visible(text.slice(at)));
  return fragment;
}

/** Where a tool is looked at and tried. */
export const toolPlace = ({ server, name }) => placeOf(['servers', server, 'tools', name]);

/** The inside of a row for a tool. */
export function toolWords(tool, query) {
  const description = plain(tool.description ?? '', MAX_DESCRIPTION);
  return [
    icon('tool'),
    h(
      'span',
      { class: 'found-words' },
      h(
        'span',
        { class: 'found-name' },
        h('b', { class: 'mono' }, marked(plain(tool.name, 100), query)),
        h('span', { class: 'found-server' }, visible(plain(tool.server, 60))),
      ),
      description && h('span', { class: 'found-text', dir: 'auto' }, marked(description, query)),
    ),
    h('span', { class: 'found-cost' }, `${short(tool.tokens)} tokens`),
  ];
}

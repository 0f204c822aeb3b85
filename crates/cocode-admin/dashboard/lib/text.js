// What servers say, shown as text and nothing else: what cannot be seen is made visible, what is long is cut.
import { h } from './dom.js';
import { count } from './format.js';

/** Characters of a text that are shown at once, and that are added by each further look. */
const SHOWN_CHARACTERS = 4_000;
const MORE_CHARACTERS = 100_000;

/** What is invisible, or turns the direction of what follows. Joiners inside of emoji are left alone. */
const UNSEEN =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFE00-\uFE0E\uFEFF\uFFA0\uFFF9-\uFFFC\u{E0000}-\u{E0FFF}]|\p{Surrogate}/gu;

const NAMES = new Map([
  [0x00, 'null'],
  [0x07, 'bell'],
  [0x08, 'backspace'],
  [0x0d, 'carriage return'],
  [0x1b, 'escape'],
  [0x7f, 'delete'],
  [0xad, 'soft hyphen'],
  [0x200b, 'zero width space'],
  [0x200c, 'zero width non-joiner'],
  [0x200d, 'zero width joiner'],
  [0x200e, 'left-to-right mark'],
  [0x200f, 'right-to-left mark'],
  [0x202a, 'left-to-right embedding'],
  [0x202b, 'right-to-left embedding'],
  [0x202c, 'end of a change of direction'],
  [0x202d, 'left-to-right override'],
  [0x202e, 'right-to-left override'],
  [0x2066, 'left-to-right isolate'],
  [0x2067, 'right-to-left isolate'],
  [0x2068, 'first strong isolate'],
  [0x2069, 'end of an isolate'],
  [0xfeff, 'byte order mark'],
]);

const code = (point) => `U+${point.toString(16).toUpperCase().padStart(4, '0')}`;

const isEmoji = (character) =>
  character !== undefined && /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F/u.test(character);

/** Whether a joiner stands between two pictures, where it makes one of them. */
function joinsEmoji(text, index) {
  const before = [...text.slice(Math.max(0, index - 2), index)].at(-1);
  const after = text.codePointAt(index + 1);
  return (
    text[index] === '\u200d' && isEmoji(before) && after !== undefined && isEmoji(String.fromCodePoint(after))
  );
}

/** The parts of a text in order: `{ text }`, or `{ point }` for what would not be seen. */
function* parts(text) {
  let start = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (joinsEmoji(text, match.index)) continue;
    if (match.index > start) yield { text: text.slice(start, match.index) };
    yield { point: match[0].codePointAt(0) };
    start = match.index + match[0].length;
  }
  if (start < text.length) yield { text: text.slice(start) };
}

function asText(value) {
  if (typeof value === 'string') return value.replaceAll('\r\n', '\n');
  return value === null || value === undefined ? '' : String(value);
}

/** A text for places that take no elements: names for assistive technology, titles, options. */
export function plain(value, limit = 200) {
  const text = asText(value);
  const cut = text.length > limit ? `${text.slice(0, limit)}…` : text;
  let shown = '';
  for (const part of parts(cut.replaceAll('\n', ' '))) shown += part.text ?? `⟨${code(part.point)}⟩`;
  return shown;
}

/** A text as nodes, in which whatever cannot be seen is a small label. */
export function visible(value) {
  const fragment = document.createDocumentFragment();
  for (const part of parts(asText(value))) {
    if (part.text !== undefined) {
      fragment.append(part.text);
    } else {
      const name = NAMES.get(part.point);
      const title = name ? `${code(part.point)}, ${name}` : code(part.point);
      fragment.append(h('span', { class: 'unseen', title }, `⟨${code(part.point)}⟩`));
    }
  }
  return fragment;
}

/** Does not cut between the halves of a character. */
function cutAt(text, limit) {
  const isHalf = text.charCodeAt(limit - 1) >= 0xd800 && text.charCodeAt(limit - 1) < 0xdc00;
  return isHalf ? limit - 1 : limit;
}

/**
 * What a server says, in an element of its own, so that letters of another direction stay in it.
 * Beyond `limit` it is cut, and a button shows more; `onWhole` hears when everything is shown.
 */
export function said(
  value,
  { tag = 'span', limit = SHOWN_CHARACTERS, onWhole = () => {}, ...attributes } = {},
) {
  const text = asText(value);
  const element = h(tag, { dir: 'auto', ...attributes, class: `said ${attributes.class ?? ''}`.trim() });
  if (text.length <= limit) {
    element.append(visible(text));
    return element;
  }
  let end = cutAt(text, limit);
  const body = h('span', null, visible(text.slice(0, end)));
  const more = h('button', { type: 'button', class: 'more' });
  const label = () => {
    const left = text.length - end;
    more.textContent =
      left > MORE_CHARACTERS
        ? `Show ${count(MORE_CHARACTERS)} of ${count(left)} more characters`
        : `Show ${count(left)} more characters`;
  };
  label();
  more.addEventListener('click', (event) => {
    event.preventDefault();
    event.stopPropagation();
    const next = cutAt(text, Math.min(text.length, end + MORE_CHARACTERS));
    body.append(visible(text.slice(end, next)));
    end = next;
    if (end < text.length) {
      label();
    } else {
      more.remove();
      onWhole();
    }
  });
  element.append(body, h('span', { class: 'cut', 'aria-hidden': 'true' }, '… '), more);
  more.addEventListener('click', () => {
    if (!more.isConnected) element.querySelector('.cut')?.remove();
  });
  return element;
}

/** A sentence in which what stands between backticks is shown as code. */
export function withCode(value, limit) {
  const text = asText(value);
  if (text.length > limit || !/`[^`]+`/.test(text)) return said(text, { limit });
  const pieces = text.split('`');
  // An odd backtick at the end belongs to the text.
  const isOpen = pieces.length % 2 === 0;
  return h(
    'span',
    { class: 'said', dir: 'auto' },
    pieces.map((piece, index) => {
      if (index % 2 === 0) return visible(piece);
      return isOpen && index === pieces.length - 1 ? visible(`\`${piece}`) : h('code', null, visible(piece));
    }),
  );
}

/** Colours that programs write for terminals say nothing here, and are left out. */
export const withoutColours = (text) => asText(text).replace(/\u001b\[[0-9;:]*m/g, '');

/** A value as JSON, indented. */
export function pretty(value) {
  try {
    return JSON.stringify(value, null, 2) ?? '';
  } catch {
    return String(value);
  }
}

/** JSON in a block that scrolls. */
export function codeBlock(value, attributes = {}) {
  const text = typeof value === 'string' ? value : pretty(value);
  return h(
    'div',
    { class: 'code', tabindex: '0', role: 'group', 'aria-label': attributes['aria-label'] ?? 'Text' },
    said(text, { tag: 'pre', limit: attributes.limit ?? 20_000 }),
  );
}

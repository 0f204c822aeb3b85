// What the page says by itself: short notes that go away, and problems that stay until they are read.
import { h, replace } from '../lib/dom.js';
import { withCode } from '../lib/text.js';
import { icon } from './icons.js';

const NOTE_MS = 6_000;
const MAX_NOTES = 4;

const stack = () => document.getElementById('notes');

function show(tone, picture, content, { stays, actions = [] }) {
  const note = h(
    'div',
    { class: `note ${tone}` },
    icon(picture),
    h('div', { class: 'note-text' }, content),
    actions,
    h(
      'button',
      {
        type: 'button',
        class: 'button quiet square small',
        'aria-label': 'Dismiss',
        on: { click: () => note.remove() },
      },
      icon('cross'),
    ),
  );
  const notes = stack();
  notes.append(note);
  while (notes.children.length > MAX_NOTES) notes.firstElementChild.remove();
  if (!stays) {
    let timer = setTimeout(() => note.remove(), NOTE_MS);
    // Whoever reads, or has the focus there, is given time.
    const hold = () => clearTimeout(timer);
    const release = () => {
      clearTimeout(timer);
      timer = setTimeout(() => note.remove(), NOTE_MS);
    };
    note.addEventListener('pointerenter', hold);
    note.addEventListener('pointerleave', release);
    note.addEventListener('focusin', hold);
    note.addEventListener('focusout', release);
  }
  return note;
}

/** Says that something was done. */
export const tell = (text, options = {}) => show('good', 'check', h('p', null, text), options);

/** Says that somebody is wanted. */
export const callFor = (text, options = {}) =>
  show('warn', 'message', h('p', null, text), { stays: true, ...options });

/** Lines of advice. */
export function hintList(hints) {
  const lines = (Array.isArray(hints) ? hints : []).filter((hint) => typeof hint === 'string').slice(0, 12);
  return lines.length > 0
    ? h(
        'ul',
        { class: 'hints' },
        lines.map((hint) => h('li', null, withCode(hint, 600))),
      )
    : null;
}

/** A problem with what can be done about it. */
export function problemBox(problem, { title } = {}) {
  return h(
    'div',
    { class: 'box bad', role: 'alert' },
    icon('warning'),
    h(
      'div',
      null,
      title && h('p', { class: 'strong' }, title),
      h('p', null, withCode(problem.message, 2_000)),
      hintList(problem.hints),
    ),
  );
}

/** Says that something failed, until it is dismissed. */
export function complain(problem, title) {
  if (problem?.name === 'AbortError' || problem?.status === 401) return;
  show(
    'bad',
    'warning',
    [
      title && h('p', { class: 'strong' }, title),
      h('p', null, withCode(problem.message ?? problem, 600)),
      hintList(problem.hints),
    ],
    { stays: true },
  );
}

/** Says something to those who listen, and shows nothing. */
export function announce(text) {
  const place = document.getElementById('announcer');
  replace(place);
  setTimeout(() => {
    place.textContent = text;
  }, 60);
}

/** A line in the place of a list that has nothing in it. */
export function empty(picture, title, ...words) {
  return h(
    'div',
    { class: 'empty' },
    icon(picture),
    h('p', { class: 'strong' }, title),
    words.map((part) => (part instanceof Node ? part : h('p', null, part))),
  );
}

/** A quiet line while something is on its way. */
export const loading = (what = 'Loading') =>
  h('p', { class: 'loading' }, icon('spin', { class: 'turning' }), `${what}…`);

// The difference between two texts as a table that is shown step by step, and knows when all of it was shown.
import { button, h, write } from '../lib/dom.js';
import { difference } from '../lib/diff.js';
import { count, plural } from '../lib/format.js';
import { plain, said, visible } from '../lib/text.js';

/** Lines that are shown by one step. */
const STEP_LINES = 400;
const STEP_LINES_LATER = 2_000;
const MAX_LINE_CHARACTERS = 2_000;

/** Beyond this nobody reads it in a browser. */
const MAX_LINES = 40_000;
const MAX_CHARACTERS = 4_000_000;

const SIGNS = new Map([
  ['gone', '−'],
  ['come', '+'],
  ['same', ' '],
]);
const WORDS = new Map([
  ['gone', 'removed'],
  ['come', 'added'],
  ['same', 'unchanged'],
]);

function lineText({ text, mark }, onWhole) {
  if (text.length > MAX_LINE_CHARACTERS || !mark || mark.from >= mark.to)
    return said(text, { limit: MAX_LINE_CHARACTERS, onWhole });
  return h(
    'span',
    { class: 'said', dir: 'auto' },
    visible(text.slice(0, mark.from)),
    h('mark', null, visible(text.slice(mark.from, mark.to))),
    visible(text.slice(mark.to)),
  );
}

function diffLine(line, { isPlain, onWhole }) {
  const kind = isPlain ? 'same' : line.kind;
  return h(
    'tr',
    { class: `diff-line ${kind}` },
    !isPlain && h('td', { class: 'diff-number' }, line.old ?? ''),
    h('td', { class: 'diff-number' }, line.new ?? ''),
    !isPlain &&
      h(
        'td',
        { class: 'diff-sign' },
        h('span', { 'aria-hidden': 'true' }, SIGNS.get(kind)),
        h('span', { class: 'hidden' }, WORDS.get(kind)),
      ),
    h('td', { class: 'diff-text' }, lineText(line, onWhole)),
  );
}

/**
 * A table of what differs: `{ node, left() }`. `left` says what was not shown yet: `{ lines, cut, isTooMuch }`, and
 * `onShown` hears when that has changed. With `isPlain` there is nothing to compare with, and the lines have no signs.
 */
export function diffTable(before, after, { name, isPlain = false, onShown = () => {} }) {
  const isTooLong = (before?.length ?? 0) + after.length > MAX_CHARACTERS;
  const lines = isTooLong ? [] : difference(before, after);
  const isTooMuch = isTooLong || lines.length > MAX_LINES;
  const gone = lines.filter(({ kind }) => kind === 'gone').length;
  const come = lines.filter(({ kind }) => kind === 'come').length;
  const caption = isTooLong
    ? 'Too long to be shown'
    : isPlain
      ? plural(lines.length, 'line')
      : before === undefined || before === null
        ? `New, ${plural(come, 'line')}`
        : `${plural(come, 'line')} added, ${plural(gone, 'line')} removed`;
  const body = h('tbody');
  let shown = 0;
  let cut = 0;
  const more = button('', { kind: 'small', on: { click: () => step(STEP_LINES_LATER) } });
  const step = (size) => {
    const next = lines.slice(shown, shown + size);
    cut += next.filter(({ text }) => text.length > MAX_LINE_CHARACTERS).length;
    const onWhole = () => {
      cut -= 1;
      onShown();
    };
    body.append(...next.map((line) => diffLine(line, { isPlain, onWhole })));
    shown += next.length;
    const left = lines.length - shown;
    write(
      more.querySelector('span'),
      left > STEP_LINES_LATER
        ? `Show ${count(STEP_LINES_LATER)} of ${count(left)} more lines`
        : `Show ${plural(left, 'more line')}`,
    );
    more.hidden = left === 0;
    if (left === 0 && shown > STEP_LINES) frame.focus();
    onShown();
  };
  const heads = isPlain ? ['Line', 'Text'] : ['Old line', 'New line', 'Change', 'Text'];
  const frame = h(
    'div',
    {
      class: 'diff-frame',
      tabindex: '0',
      role: 'group',
      'aria-label': isPlain ? `Text of ${plain(name, 60)}` : `Difference for ${plain(name, 60)}`,
    },
    h(
      'table',
      { class: 'diff' },
      h('caption', { class: 'hidden' }, caption),
      h(
        'thead',
        { class: 'hidden' },
        h(
          'tr',
          null,
          heads.map((word) => h('th', { scope: 'col' }, word)),
        ),
      ),
      body,
    ),
  );
  frame.hidden = isTooLong;
  const node = h(
    'div',
    null,
    h('p', { class: 'small faint' }, caption),
    frame,
    h('div', { class: 'diff-more' }, more),
  );
  step(STEP_LINES);
  return { node, left: () => ({ lines: lines.length - shown, cut, isTooMuch }) };
}

// Servers that a project brings along: what would be run, what has changed since, and whether it may.
import { button, h, replace, sync, write } from '../lib/dom.js';
import { path, send } from '../lib/api.js';
import { difference } from '../lib/diff.js';
import { plural } from '../lib/format.js';
import { loadServers, loadTrust } from '../lib/loads.js';
import { state, touch, watch } from '../lib/store.js';
import { plain, said, visible } from '../lib/text.js';
import { confirm } from '../parts/dialog.js';
import { icon } from '../parts/icons.js';
import { complain, empty, loading, tell } from '../parts/notes.js';

const MAX_LINES = 400;
const MAX_LINE_CHARACTERS = 2_000;

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

function lineText({ text, mark }) {
  if (text.length > MAX_LINE_CHARACTERS || !mark || mark.from >= mark.to)
    return said(text, { limit: MAX_LINE_CHARACTERS });
  return h(
    'span',
    { class: 'said', dir: 'auto' },
    visible(text.slice(0, mark.from)),
    h('mark', null, visible(text.slice(mark.from, mark.to))),
    visible(text.slice(mark.to)),
  );
}

function diffLine(line) {
  return h(
    'tr',
    { class: `diff-line ${line.kind}` },
    h('td', { class: 'diff-number' }, line.old ?? ''),
    h('td', { class: 'diff-number' }, line.new ?? ''),
    h(
      'td',
      { class: 'diff-sign' },
      h('span', { 'aria-hidden': 'true' }, SIGNS.get(line.kind)),
      h('span', { class: 'hidden' }, WORDS.get(line.kind)),
    ),
    h('td', { class: 'diff-text' }, lineText(line)),
  );
}

/** The difference as a table, cut if it is very long, with a way to see the rest. */
function diffTable(entry) {
  const lines = difference(entry.before, String(entry.after ?? ''));
  const body = h('tbody', null, lines.slice(0, MAX_LINES).map(diffLine));
  const gone = lines.filter(({ kind }) => kind === 'gone').length;
  const come = lines.filter(({ kind }) => kind === 'come').length;
  const caption =
    entry.before === undefined || entry.before === null
      ? `New, ${plural(come, 'line')}`
      : `${plural(come, 'line')} added, ${plural(gone, 'line')} removed`;
  const table = h(
    'table',
    { class: 'diff' },
    h('caption', { class: 'hidden' }, caption),
    h(
      'thead',
      { class: 'hidden' },
      h(
        'tr',
        null,
        ['Old line', 'New line', 'Change', 'Text'].map((word) => h('th', { scope: 'col' }, word)),
      ),
    ),
    body,
  );
  const more =
    lines.length > MAX_LINES &&
    button(`Show ${plural(lines.length - MAX_LINES, 'more line')}`, {
      kind: 'small',
      on: {
        click: (event) => {
          body.append(...lines.slice(MAX_LINES, MAX_LINES * 25).map(diffLine));
          event.currentTarget.remove();
        },
      },
    });
  return h(
    'div',
    null,
    h('p', { class: 'small faint' }, caption),
    h(
      'div',
      {
        class: 'diff-frame',
        tabindex: '0',
        role: 'group',
        'aria-label': `Difference for ${plain(entry.name, 60)}`,
      },
      table,
    ),
    more,
  );
}

async function decide(entry, verdict, controls) {
  if (
    verdict === 'reject' &&
    !(await confirm(
      `Reject ${plain(entry.name, 60)}?`,
      'It is not started, and not asked about again until its entry changes.',
      { yes: 'Reject' },
    ))
  )
    return;
  for (const control of controls) control.disabled = true;
  try {
    await send(path('trust', entry.name, verdict), { hash: entry.hash });
    state.trust = state.trust.filter((one) => one !== entry && one.hash !== entry.hash);
    touch('trust');
    tell(
      h(
        'span',
        null,
        said(entry.name, { class: 'strong' }),
        verdict === 'approve' ? ' is approved.' : ' is rejected.',
      ),
    );
  } catch (problem) {
    complain(problem, `${plain(entry.name, 60)}: not decided`);
  } finally {
    for (const control of controls) control.disabled = false;
    // What was decided about may have changed meanwhile: then the new difference has to be seen.
    Promise.all([loadTrust(), loadServers()]).catch(complain);
  }
}

function card(entry) {
  const approve = button('Approve', {
    icon: icon('check'),
    kind: 'primary',
    'aria-label': `Approve ${plain(entry.name, 60)}`,
    on: { click: () => decide(entry, 'approve', controls) },
  });
  const reject = button('Reject', {
    icon: icon('cross'),
    'aria-label': `Reject ${plain(entry.name, 60)}`,
    on: { click: () => decide(entry, 'reject', controls) },
  });
  const controls = [approve, reject];
  const node = h(
    'li',
    { class: 'card trust' },
    h(
      'div',
      { class: 'card-head' },
      h('h2', null, said(entry.name, { limit: 80 })),
      h('span', { class: 'tag warn' }, entry.isNew ? 'new' : 'changed'),
    ),
    h(
      'p',
      { class: 'faint' },
      entry.isNew
        ? 'A server that this project brings along. Approving lets it run with your rights:'
        : 'You approved this server before, and its entry is different now:',
    ),
    diffTable(entry),
    h(
      'p',
      { class: 'small faint' },
      plain(entry.scope ?? '', 30),
      ' · ',
      said(entry.file, { class: 'mono', limit: 300 }),
    ),
    h('div', { class: 'actions' }, approve, reject),
  );
  return { node };
}

function mount(outlet, _place, signal) {
  const list = h('ul', { class: 'questions' });
  const nothing = h('div');
  const lead = h('p', { class: 'lead' });
  let shown;
  const update = () => {
    const hadFocus = list.contains(document.activeElement);
    sync(list, state.trust, (entry) => `${entry.name}\n${entry.hash}`, card);
    if (hadFocus && !list.contains(document.activeElement)) outlet.querySelector('h1').focus();
    write(
      lead,
      state.trust.length === 0
        ? 'Servers that come with a project wait here for your approval.'
        : `${plural(state.trust.length, 'entry', 'entries')} to review`,
    );
    const kind = state.trust.length > 0 ? null : state.loaded.has('trust') ? 'none' : 'loading';
    if (kind === shown) return;
    shown = kind;
    replace(
      nothing,
      kind === 'none' &&
        empty('shield', 'Nothing to review', 'Every server of this project is decided about.'),
      kind === 'loading' && loading(),
    );
  };
  replace(
    outlet,
    h('div', { class: 'view-head' }, h('div', null, h('h1', { tabindex: '-1' }, 'Trust'), lead)),
    list,
    nothing,
  );
  watch(['trust'], update, signal);
  update();
}

export const trustView = { nav: 'trust', title: () => 'Trust', mount };

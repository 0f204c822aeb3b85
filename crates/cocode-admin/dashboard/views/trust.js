// Servers and settings that a project brings along: what they say, what has changed since, and whether they may.
import { button, h, put, replace, sync, uniqueId, write } from '../lib/dom.js';
import { path, send } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { loadServers, loadTrust } from '../lib/loads.js';
import { state, touch, watch } from '../lib/store.js';
import { plain, said } from '../lib/text.js';
import { confirm } from '../parts/dialog.js';
import { diffTable } from '../parts/diff-table.js';
import { icon } from '../parts/icons.js';
import { complain, empty, loading, tell } from '../parts/notes.js';

/** What is said of an entry, by what it is and whether it was approved before. */
const LEADS = new Map([
  ['server new', 'A server that this project brings along. Approving lets it run with your rights:'],
  ['server changed', 'You approved this server before, and its entry is different now:'],
  [
    'settings new',
    'Settings that this project brings along. Until you approve them, only their rules to deny and to ask hold:',
  ],
  [
    'settings changed',
    'You approved settings of this file before, and it is different now. Only a hash of those was kept, so the difference cannot be shown; this is all that it says now:',
  ],
]);

const isSettings = (entry) => entry.kind === 'settings';

/** What is said of one that was rejected. */
const REJECTED = new Map([
  ['server', 'You rejected this server as it is. Approving it after all lets it run with your rights:'],
  ['settings', 'You rejected these settings as they are. Only their rules to deny and to ask hold:'],
]);

/** Why it cannot be approved here yet, or null if it can. */
function whyNotYet(entry, { lines, cut, isTooMuch }) {
  if (isTooMuch)
    return [
      'This is too long to be read here. Read it at a terminal, and approve it there: ',
      h('code', null, `cocode mcp trust ${plain(entry.name, 80)}`),
    ];
  if (lines > 0) return `You have not seen all of it: ${plural(lines, 'line')} to go.`;
  if (cut > 0)
    return `You have not seen all of it: ${plural(cut, 'line is', 'lines are')} cut. Show the rest first.`;
  return null;
}

async function decide(entry, verdict, { controls, refresh }) {
  if (
    verdict === 'reject' &&
    !(await confirm(
      `Reject ${plain(entry.name, 60)}?`,
      isSettings(entry)
        ? 'They do not hold, but for their rules to deny and to ask, and you are not asked again until the file changes.'
        : 'It is not started, and not asked about again until its entry changes.',
      { yes: 'Reject' },
    ))
  )
    return;
  for (const control of controls) control.disabled = true;
  try {
    await send(path('trust', entry.name, verdict), { hash: entry.hash });
    const isOther = (one) => one !== entry && one.hash !== entry.hash;
    state.trust = state.trust.filter(isOther);
    state.rejected = state.rejected.filter(isOther);
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
    refresh();
    // What was decided about may have changed meanwhile: then the new difference has to be seen.
    Promise.all([loadTrust(), loadServers()]).catch(complain);
  }
}

function card(entry) {
  const approve = button('Approve', {
    icon: icon('check'),
    kind: 'primary',
    'aria-label': `Approve ${plain(entry.name, 60)}`,
    on: { click: () => decide(entry, 'approve', { controls, refresh }) },
  });
  const reject = button('Reject', {
    icon: icon('cross'),
    'aria-label': `Reject ${plain(entry.name, 60)}`,
    on: { click: () => decide(entry, 'reject', { controls, refresh }) },
  });
  const controls = entry.isRejected ? [approve] : [approve, reject];
  const kind = isSettings(entry) ? 'settings' : 'server';
  const id = uniqueId('unread');
  const unseen = h('p', { id, class: 'small unread', role: 'status' });
  let table = null;
  // What is approved has been shown, all of it.
  const refresh = () => {
    const why = whyNotYet(entry, table.left());
    approve.disabled = why !== null;
    put(approve, 'aria-describedby', why === null ? null : id);
    replace(unseen, why);
    unseen.hidden = why === null;
  };
  table = diffTable(entry.before, String(entry.after ?? ''), {
    name: entry.name,
    isPlain: isSettings(entry) && !entry.isNew,
    onShown: () => table && refresh(),
  });
  const node = h(
    'li',
    { class: 'card trust' },
    h(
      'div',
      { class: 'card-head' },
      h('h2', null, said(entry.name, { limit: 80 })),
      h('span', { class: 'tag' }, kind),
      entry.isRejected
        ? h('span', { class: 'tag' }, 'rejected')
        : h('span', { class: 'tag warn' }, entry.isNew ? 'new' : 'changed'),
    ),
    h(
      'p',
      { class: 'faint' },
      entry.isRejected ? REJECTED.get(kind) : LEADS.get(`${kind} ${entry.isNew ? 'new' : 'changed'}`),
    ),
    table.node,
    h(
      'p',
      { class: 'small faint' },
      plain(entry.scope ?? '', 30),
      ' · ',
      said(entry.file, { class: 'mono', limit: 300 }),
    ),
    h('div', { class: 'actions' }, controls, unseen),
  );
  refresh();
  return { node };
}

function mount(outlet, _place, signal) {
  const list = h('ul', { class: 'questions' });
  const rejected = h('ul', { class: 'questions' });
  const refused = h(
    'section',
    { 'aria-label': 'Rejected', hidden: true },
    h('h2', { class: 'section-title' }, 'Rejected'),
    rejected,
  );
  const nothing = h('div');
  const lead = h('p', { class: 'lead' });
  let shown;
  const update = () => {
    const hasFocus = () => [list, rejected].some((one) => one.contains(document.activeElement));
    const hadFocus = hasFocus();
    const keyOf = (entry) => `${entry.name}\n${entry.hash}`;
    sync(list, state.trust, keyOf, card);
    sync(rejected, state.rejected, keyOf, card);
    refused.hidden = state.rejected.length === 0;
    if (hadFocus && !hasFocus()) outlet.querySelector('h1').focus();
    write(
      lead,
      state.trust.length === 0
        ? 'Servers and settings that come with a project wait here for your approval.'
        : `${plural(state.trust.length, 'entry', 'entries')} to review`,
    );
    const kind = state.trust.length > 0 ? null : state.loaded.has('trust') ? 'none' : 'loading';
    if (kind === shown) return;
    shown = kind;
    replace(
      nothing,
      kind === 'none' &&
        empty(
          'shield',
          'Nothing to review',
          'Everything that this project brings along is decided about.',
          h('p', null, 'What was decided: ', h('code', null, 'cocode mcp trust --list')),
        ),
      kind === 'loading' && loading(),
    );
  };
  replace(
    outlet,
    h('div', { class: 'view-head' }, h('div', null, h('h1', { tabindex: '-1' }, 'Trust'), lead)),
    list,
    nothing,
    refused,
  );
  watch(['trust'], update, signal);
  update();
}

export const trustView = { nav: 'trust', title: () => 'Trust', mount };

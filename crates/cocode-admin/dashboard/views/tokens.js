// Tokens that let clients in: made, shown once, revoked. And who is connected now.
import { button, h, replace } from '../lib/dom.js';
import { get, path, remove, send } from '../lib/api.js';
import { date, dayOf, moment, relative, span } from '../lib/format.js';
import { state, watch } from '../lib/store.js';
import { plain, said } from '../lib/text.js';
import { confirm } from '../parts/dialog.js';
import { icon } from '../parts/icons.js';
import { announce, complain, empty, loading, problemBox, tell } from '../parts/notes.js';

const EXPIRIES = [
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
  ['', 'Never'],
];
const SESSIONS_MS = 5_000;

/** Puts a text on the clipboard; where that is not possible, it is selected. */
async function copy(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied.');
    return true;
  } catch {
    getSelection().selectAllChildren(place);
    return false;
  }
}

function secret(name, token, onDone) {
  const place = h('code', { class: 'secret', tabindex: '0', 'aria-label': 'The token' }, token);
  const press = button('Copy', { icon: icon('copy'), kind: 'primary' });
  press.addEventListener('click', async () => {
    press.querySelector('span').textContent = (await copy(token, place))
      ? 'Copied'
      : 'Selected: press Ctrl C';
  });
  return h(
    'div',
    { class: 'box good secret-box' },
    icon('key'),
    h(
      'div',
      { class: 'grow' },
      h('p', { class: 'strong' }, 'Token for ', said(name)),
      h('p', null, 'This is the only time that it is shown. Keep it where you keep passwords.'),
      place,
      h('div', { class: 'actions' }, press, button('Done', { on: { click: onDone } })),
    ),
  );
}

function createForm(onCreated) {
  const name = h('input', {
    class: 'input',
    id: 'token-name',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'laptop',
    maxlength: '128',
  });
  const expiry = h(
    'select',
    { class: 'input', id: 'token-expiry' },
    EXPIRIES.map(([value, label]) => h('option', { value, selected: value === '90' }, label)),
  );
  const admin = h('input', { type: 'checkbox', class: 'tick', id: 'token-admin' });
  const trouble = h('div', { class: 'trouble' });
  const press = h(
    'button',
    { type: 'submit', class: 'button primary' },
    icon('plus'),
    h('span', null, 'Create token'),
  );
  const form = h(
    'form',
    { class: 'card token-form', 'aria-label': 'New token' },
    h('h2', { class: 'card-title' }, 'New token'),
    h(
      'div',
      { class: 'row' },
      h('div', { class: 'field grow' }, h('label', { for: 'token-name', class: 'field-name' }, 'Name'), name),
      h(
        'div',
        { class: 'field' },
        h('label', { for: 'token-expiry', class: 'field-name' }, 'Expires'),
        expiry,
      ),
    ),
    h(
      'label',
      { class: 'check', for: 'token-admin' },
      admin,
      h('span', null, 'May also use the management API, and so this page'),
    ),
    trouble,
    h('div', { class: 'actions' }, press),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    press.disabled = true;
    replace(trouble);
    try {
      const created = await send('tokens', {
        name: name.value.trim(),
        admin: admin.checked,
        ...(expiry.value !== '' && { expiresInDays: Number(expiry.value) }),
      });
      form.reset();
      onCreated(created);
    } catch (problem) {
      replace(trouble, problemBox(problem));
      name.focus();
    } finally {
      press.disabled = false;
    }
  });
  return form;
}

async function revoke(token, reload) {
  const words =
    'Whoever uses it is refused from now on, and sessions opened with it end. This cannot be taken back.';
  if (!(await confirm(`Revoke ${plain(token.name, 60)}?`, words, { yes: 'Revoke' }))) return;
  try {
    await remove(path('tokens', token.name));
    tell(h('span', null, 'Token ', said(token.name, { class: 'strong' }), ' is revoked.'));
  } catch (problem) {
    complain(problem, 'Not revoked');
  }
  reload();
}

function tokenRow(token, reload) {
  const expires = moment(token.expiresAt);
  const isOver = expires !== null && expires < Date.now();
  return h(
    'tr',
    null,
    h(
      'th',
      { scope: 'row', 'data-label': 'Name' },
      said(token.name, { limit: 80 }),
      token.admin && [' ', h('span', { class: 'tag' }, 'admin')],
    ),
    h('td', { 'data-label': 'Created', title: date(token.createdAt) }, dayOf(token.createdAt)),
    h('td', { 'data-label': 'Last used' }, token.lastUsedAt ? relative(token.lastUsedAt) : 'never'),
    h(
      'td',
      { 'data-label': 'Expires' },
      expires === null
        ? 'never'
        : isOver
          ? h('span', { class: 'tag bad' }, 'expired')
          : dayOf(token.expiresAt),
    ),
    h(
      'td',
      { class: 'right' },
      button('Revoke', {
        kind: 'small danger',
        'aria-label': `Revoke ${plain(token.name, 60)}`,
        on: { click: () => revoke(token, reload) },
      }),
    ),
  );
}

const head = (words) =>
  h(
    'thead',
    null,
    h(
      'tr',
      null,
      words.map((word) => h('th', { scope: 'col' }, word || h('span', { class: 'hidden' }, 'Actions'))),
    ),
  );

/** Who may connect while there are no tokens, by what the gateway wants to see. */
const WITHOUT_TOKENS = new Map([
  [
    'open',
    'As long as there is none, every program of this machine may connect. The first token closes the door for those who have none.',
  ],
  ['tokens', 'The gateway wants to see one all the same, so nobody can connect: make another.'],
  ['oauth', 'Clients connect with tokens of your authorization server.'],
]);

function tokenTable(tokens, authentication, reload) {
  if (tokens.length === 0)
    return empty('key', 'No tokens', WITHOUT_TOKENS.get(authentication) ?? 'Make the first one.');
  return h(
    'div',
    { class: 'table-frame' },
    h(
      'table',
      { class: 'table stacking' },
      h('caption', { class: 'hidden' }, 'Tokens'),
      head(['Name', 'Created', 'Last used', 'Expires', '']),
      h(
        'tbody',
        null,
        tokens.map((token) => tokenRow(token, reload)),
      ),
    ),
  );
}

function sessionTable(sessions) {
  if (sessions.length === 0) return h('p', { class: 'faint' }, 'Nobody is connected.');
  const rows = sessions.slice(0, 200).map((session) =>
    h(
      'tr',
      null,
      h('th', { scope: 'row', 'data-label': 'Who' }, said(session.principal ?? 'local', { limit: 60 })),
      h('td', { 'data-label': 'Client' }, session.client ? said(session.client, { limit: 60 }) : '–'),
      h('td', { 'data-label': 'At', class: 'mono' }, said(session.endpoint, { limit: 80 })),
      h(
        'td',
        { 'data-label': 'By' },
        [session.transport, session.revision]
          .filter(Boolean)
          .map((part) => plain(part, 40))
          .join(', '),
      ),
      h('td', { 'data-label': 'Since', class: 'tabular' }, span(session.ageSeconds)),
      h('td', { 'data-label': 'Idle', class: 'tabular' }, span(session.idleSeconds)),
    ),
  );
  return h(
    'div',
    { class: 'table-frame' },
    h(
      'table',
      { class: 'table stacking' },
      h('caption', { class: 'hidden' }, 'Sessions'),
      head(['Who', 'Client', 'At', 'By', 'Since', 'Idle']),
      h('tbody', null, rows),
    ),
  );
}

function mount(outlet, _place, signal) {
  const shownOnce = h('div', { 'aria-live': 'polite' });
  const list = h('div', null, loading());
  const sessions = h('div', null, loading());
  const load = async () => {
    try {
      const [{ tokens }, status] = await Promise.all([get('tokens', { signal }), get('status', { signal })]);
      replace(list, tokenTable(Array.isArray(tokens) ? tokens : [], status?.authentication, load));
    } catch (problem) {
      if (!signal.aborted) replace(list, problemBox(problem));
    }
  };
  const loadSessions = async () => {
    try {
      const answer = await get('sessions', { signal });
      replace(sessions, sessionTable(Array.isArray(answer?.sessions) ? answer.sessions : []));
    } catch (problem) {
      if (!signal.aborted) replace(sessions, problemBox(problem));
    }
  };
  const form = createForm(({ name, token }) => {
    replace(
      shownOnce,
      secret(name, token, () => {
        replace(shownOnce);
        form.querySelector('input').focus();
      }),
    );
    shownOnce.querySelector('button').focus();
    load();
  });
  replace(
    outlet,
    h(
      'div',
      { class: 'view-head' },
      h(
        'div',
        null,
        h('h1', { tabindex: '-1' }, 'Tokens'),
        h(
          'p',
          { class: 'lead' },
          state.status?.authentication === 'oauth'
            ? 'Clients show one of these, or a token of your authorization server.'
            : 'Clients show one of these to be let in.',
        ),
      ),
    ),
    shownOnce,
    h('div', { class: 'tokens' }, h('section', { 'aria-label': 'Tokens' }, list), form),
    h(
      'section',
      { 'aria-label': 'Sessions' },
      h('h2', { class: 'section-title' }, 'Connected now'),
      sessions,
    ),
  );
  watch(['tokens'], load, signal);
  const timer = setInterval(loadSessions, SESSIONS_MS);
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(timer);
      replace(shownOnce);
    },
    { once: true },
  );
  load();
  loadSessions();
}

export const tokensView = { nav: 'tokens', title: () => 'Tokens', mount };

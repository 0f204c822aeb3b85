// Questions of servers, answered, declined, or dismissed; and calls that a rule wants somebody to allow.
import { button, h, replace, sync, write } from '../lib/dom.js';
import { path, send } from '../lib/api.js';
import { moment, plural, relative, span } from '../lib/format.js';
import { loadElicitations } from '../lib/loads.js';
import { state, touch, watch } from '../lib/store.js';
import { said } from '../lib/text.js';
import { schemaForm } from '../parts/form.js';
import { icon } from '../parts/icons.js';
import { addressBox } from '../parts/links.js';
import { complain, empty, loading, tell } from '../parts/notes.js';
import { consentCard } from './consent-card.js';

const CLOCK_MS = 1_000;
const URGENT_MS = 60_000;

const DONE = new Map([
  ['accept', 'Answered.'],
  ['decline', 'Declined.'],
  ['cancel', 'Dismissed.'],
]);

function settled(id) {
  state.elicitations = state.elicitations.filter((one) => one.id !== id);
  touch('elicitations');
}

const DECIDED = new Map([
  ['accept', 'Allowed.'],
  ['decline', 'Denied.'],
]);

async function answer(id, body, controls, words = DONE) {
  for (const control of controls) control.disabled = true;
  try {
    await send(path('elicitations', id), body);
    settled(id);
    tell(words.get(body.action));
  } catch (problem) {
    for (const control of controls) control.disabled = false;
    if (problem.status === 404 || problem.status === 409) {
      settled(id);
      complain(problem, 'Too late');
      loadElicitations().catch(complain);
    } else {
      complain(problem, 'The answer was not taken');
    }
  }
}

function card(question) {
  if (question.kind === 'consent') {
    const decide = (action, controls) => answer(question.id, { action }, controls, DECIDED);
    return consentCard(question, decide);
  }
  const { id, server, tool, principal, message, mode } = question;
  const deadline = h('span', { class: 'deadline' });
  const form = mode === 'url' ? null : schemaForm(question.requestedSchema, { name: 'Answer' });
  const accept = h(
    'button',
    { type: 'submit', class: 'button primary' },
    icon('check'),
    h('span', null, mode === 'url' ? 'Done, go on' : form.isEmpty ? 'Accept' : 'Send answer'),
  );
  const decline = button('Decline', { on: { click: () => answer(id, { action: 'decline' }, controls) } });
  const cancel = button('Dismiss', {
    kind: 'quiet',
    on: { click: () => answer(id, { action: 'cancel' }, controls) },
  });
  const controls = [accept, decline, cancel];
  const element = h(
    'form',
    { class: 'question-form', novalidate: true },
    mode === 'url' && [
      h(
        'p',
        { class: 'faint' },
        'It wants you to open this page. Look at the address first: nothing is opened by itself.',
      ),
      addressBox(question.url, { label: 'Open page' }),
    ],
    form?.node,
    h('div', { class: 'actions' }, accept, decline, cancel),
  );
  element.addEventListener('submit', (event) => {
    event.preventDefault();
    if (accept.disabled) return;
    const content = form?.read();
    if (content === null) return;
    answer(id, { action: 'accept', ...(content !== undefined && { content }) }, controls);
  });
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) element.requestSubmit();
  });
  const node = h(
    'li',
    { class: 'card question' },
    h(
      'div',
      { class: 'question-head' },
      icon('message'),
      h(
        'h2',
        null,
        said(server, { class: 'strong', limit: 80 }),
        h('span', { class: 'question-asks' }, ' asks'),
      ),
      deadline,
    ),
    said(message, { tag: 'p', class: 'question-words', limit: 1_500 }),
    h(
      'p',
      { class: 'faint small' },
      tool && ['During a call of ', said(tool, { class: 'mono', limit: 100 })],
      principal && [tool ? ' by ' : 'For ', said(principal, { limit: 80 })],
      ` · ${relative(question.at)}`,
    ),
    element,
    h(
      'p',
      { class: 'faint small' },
      'The answer goes to the server. Never give a password or a key here: an honest server does not ask for one like this.',
    ),
  );
  const update = () => {
    const left = (moment(question.deadlineAt) ?? 0) - Date.now();
    write(
      deadline,
      question.deadlineAt ? (left > 0 ? `answer within ${span(left / 1_000)}` : 'time is up') : '',
    );
    deadline.className = left < URGENT_MS ? 'deadline urgent' : 'deadline';
  };
  update();
  return { node, update };
}

function mount(outlet, _place, signal) {
  const list = h('ul', { class: 'questions' });
  const nothing = h('div');
  const lead = h('p', { class: 'lead', role: 'status' });
  let shown = null;
  const update = () => {
    const questions = state.elicitations.filter((one) => one.id !== undefined);
    const hadFocus = list.contains(document.activeElement);
    sync(list, questions, (one) => one.id, card);
    // The card with the focus is gone: it goes to the heading, not to nowhere.
    if (hadFocus && !list.contains(document.activeElement)) outlet.querySelector('h1').focus();
    write(
      lead,
      questions.length === 0
        ? 'What servers ask you while they work, and calls that a rule wants you to allow.'
        : `${plural(questions.length, 'question')} waiting`,
    );
    const kind = questions.length > 0 ? null : state.loaded.has('elicitations') ? 'none' : 'loading';
    if (kind === shown) return;
    shown = kind;
    replace(
      nothing,
      kind === 'none' &&
        empty(
          'inbox',
          'Nothing to answer',
          'Keep this page open: what clients cannot ask their users appears here at once, and fails where nobody looks.',
        ),
      kind === 'loading' && loading(),
    );
  };
  replace(
    outlet,
    h('div', { class: 'view-head' }, h('div', null, h('h1', { tabindex: '-1' }, 'Inbox'), lead)),
    list,
    nothing,
  );
  watch(['elicitations'], update, signal);
  const timer = setInterval(update, CLOCK_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  update();
}

export const inboxView = { nav: 'inbox', title: () => 'Inbox', mount };

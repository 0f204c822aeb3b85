// A call that a rule wants somebody to allow: who wants it, what exactly would be called, and why it is asked about.
import { button, h, write } from '../lib/dom.js';
import { moment, relative, span } from '../lib/format.js';
import { plain, said, withCode } from '../lib/text.js';
import { icon } from '../parts/icons.js';

const URGENT_MS = 60_000;

/** Beyond so many braces within braces, JSON is shown in one piece. */
const MAX_NESTING = 12;

const KINDS = new Map([
  ['string', 'text'],
  ['number', 'number'],
  ['boolean', 'yes or no'],
]);

const kindOf = (value) =>
  value === null ? 'nothing' : Array.isArray(value) ? 'list' : (KINDS.get(typeof value) ?? 'object');

function nesting(text) {
  let [deepest, depth] = [0, 0];
  for (const character of text) {
    if (character === '{' || character === '[') depth += 1;
    if (character === '}' || character === ']') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/**
 * A value as it is read best: a text as what it says, other JSON on lines of its own. Where reading it would change
 * anything, as a name that is there twice or a number with too many digits, it is shown as the client wrote it.
 */
function readable(text) {
  try {
    const value = JSON.parse(text);
    const kind = kindOf(value);
    if (typeof value === 'string') return { kind, text: value };
    const isSame = JSON.stringify(value) === text && nesting(text) <= MAX_NESTING;
    return { kind, text: isSame ? JSON.stringify(value, null, 2) : text };
  } catch {
    return { kind: 'JSON', text };
  }
}

function argumentRow({ name, value }) {
  const { kind, text } = readable(String(value ?? ''));
  return h(
    'div',
    { class: 'argument' },
    h('dt', null, said(name, { class: 'mono', limit: 200 }), h('span', { class: 'field-kind' }, kind)),
    h(
      'dd',
      null,
      h(
        'div',
        { class: 'argument-value', tabindex: '0', role: 'group', 'aria-label': `Value of ${plain(name, 60)}` },
        // All of it: nobody allows what they have not seen.
        text === '' ? h('span', { class: 'faint' }, 'empty') : said(text, { limit: Infinity }),
      ),
    ),
  );
}

function argumentList(call) {
  const all = Array.isArray(call.arguments) ? call.arguments : [];
  if (all.length === 0) return h('p', { class: 'faint' }, 'It would be called without arguments.');
  return h('dl', { class: 'arguments', 'aria-label': 'Arguments of the call' }, all.map(argumentRow));
}

/** Who wants it, as far as that is known. */
function who({ principal, consent }) {
  if (principal) return said(principal, { class: 'strong', limit: 80 });
  if (consent?.client) return said(consent.client, { class: 'strong', limit: 80 });
  return h('span', { class: 'strong' }, 'Somebody');
}

/** A reason as a sentence. */
const sentence = (reason) => `${String(reason).charAt(0).toUpperCase()}${String(reason).slice(1)}.`;

/** The card: `answer(action, controls)` is told what was decided. */
export function consentCard(question, answer) {
  const call = question.consent ?? {};
  const deadline = h('span', { class: 'deadline' });
  const target = `${plain(question.tool ?? 'the tool', 60)} of ${plain(question.server, 60)}`;
  const allow = button('Allow', {
    icon: icon('check'),
    kind: 'primary',
    'aria-label': `Allow the call of ${target}`,
    on: { click: () => answer('accept', controls) },
  });
  const deny = button('Deny', {
    icon: icon('ban'),
    'aria-label': `Deny the call of ${target}`,
    on: { click: () => answer('decline', controls) },
  });
  const controls = [allow, deny];
  const node = h(
    'li',
    { class: 'card question consent', 'data-kind': 'consent' },
    h(
      'div',
      { class: 'question-head' },
      icon('shield'),
      h(
        'h2',
        null,
        who(question),
        h('span', { class: 'question-asks' }, ' wants to call '),
        said(question.tool ?? 'a tool', { class: 'mono', limit: 120 }),
        h('span', { class: 'question-asks' }, ' of '),
        said(question.server, { class: 'strong', limit: 80 }),
      ),
      deadline,
    ),
    argumentList(call),
    h(
      'div',
      { class: 'why small faint' },
      call.reason && h('p', null, withCode(sentence(call.reason), 600)),
      h(
        'p',
        null,
        question.principal && call.client && ['Client: ', said(call.client, { limit: 120 }), ' · '],
        !question.principal &&
          (call.client
            ? 'It calls itself that: without tokens, the gateway does not know who it is · '
            : 'Without tokens, the gateway does not know who it is · '),
        relative(question.at),
      ),
    ),
    h('div', { class: 'actions' }, allow, deny),
    h('p', { class: 'faint small' }, 'This lets through one call, with exactly these arguments.'),
  );
  const update = () => {
    const left = (moment(question.deadlineAt) ?? 0) - Date.now();
    write(
      deadline,
      question.deadlineAt ? (left > 0 ? `decide within ${span(left / 1_000)}` : 'time is up') : '',
    );
    deadline.className = left < URGENT_MS ? 'deadline urgent' : 'deadline';
  };
  update();
  return { node, update };
}

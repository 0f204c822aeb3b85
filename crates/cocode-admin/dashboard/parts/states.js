// The states of servers and of calls: a word, a shape and a tone for each, so that colour says nothing alone.
import { h, put, write } from '../lib/dom.js';
import { plain } from '../lib/text.js';
import { icon } from './icons.js';

const SERVER_STATES = new Map([
  ['ready', { label: 'Ready', tone: 'good', icon: 'ready', group: 'active' }],
  ['starting', { label: 'Starting', tone: 'info', icon: 'spin', group: 'active' }],
  ['slow', { label: 'Slow to start', tone: 'warn', icon: 'clock', group: 'active' }],
  ['retrying', { label: 'Trying again', tone: 'warn', icon: 'refresh', group: 'attention' }],
  ['failed', { label: 'Failed', tone: 'bad', icon: 'wrong', group: 'attention' }],
  ['needs-auth', { label: 'Needs login', tone: 'warn', icon: 'key', group: 'attention' }],
  ['needs-client-registration', { label: 'Needs a client', tone: 'warn', icon: 'key', group: 'attention' }],
  ['pending', { label: 'Awaits approval', tone: 'warn', icon: 'shield', group: 'attention' }],
  ['blocked', { label: 'Blocked', tone: 'bad', icon: 'ban', group: 'attention' }],
  ['invalid', { label: 'Invalid', tone: 'bad', icon: 'warning', group: 'attention' }],
  ['rejected', { label: 'Rejected', tone: 'off', icon: 'ban', group: 'off' }],
  ['stopped', { label: 'Stopped', tone: 'off', icon: 'hollow', group: 'off' }],
  ['disabled', { label: 'Disabled', tone: 'off', icon: 'dash', group: 'off' }],
]);

/** A call that this page has not made yet; the gateway knows nothing of it. */
const WAITING = { label: 'Waits for its turn', tone: 'off', icon: 'clock' };

const CALL_STATES = new Map([
  ['running', { label: 'Running', tone: 'info', icon: 'spin' }],
  ['ok', { label: 'OK', tone: 'good', icon: 'check' }],
  ['tool-error', { label: 'Tool error', tone: 'warn', icon: 'warning' }],
  ['error', { label: 'Error', tone: 'bad', icon: 'wrong' }],
  ['cancelled', { label: 'Cancelled', tone: 'off', icon: 'dash' }],
  ['denied', { label: 'Denied', tone: 'bad', icon: 'ban' }],
]);

const unknown = (name) => ({
  label: plain(name, 30) || 'Unknown',
  tone: 'off',
  icon: 'hollow',
  group: 'active',
});

export const serverState = (name) => SERVER_STATES.get(name) ?? unknown(name);
const callState = (name) => (name === 'waiting' ? WAITING : (CALL_STATES.get(name) ?? unknown(name)));
export const callStates = () => [...CALL_STATES].map(([name, { label }]) => ({ name, label }));

/** A badge that can change: `{ node, update(name) }`. */
function badge(lookUp, name) {
  const label = h('span');
  const node = h('span', { class: 'state' });
  let shown = null;
  const update = (next) => {
    if (next === shown) return;
    shown = next;
    const { label: words, tone, icon: picture } = lookUp(next);
    put(node, 'class', `state ${tone}`);
    write(label, words);
    node.replaceChildren(icon(picture, { class: picture === 'spin' ? 'turning' : '' }), label);
  };
  update(name);
  return { node, update };
}

export const serverBadge = (name) => badge(serverState, name);
export const callBadge = (name) => badge(callState, name);

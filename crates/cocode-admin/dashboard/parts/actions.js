// What can be done to a server: which of it makes sense now, and doing it.
import { button, h } from '../lib/dom.js';
import { path, remove, sendLong } from '../lib/api.js';
import { dropServer, learnServer } from '../lib/loads.js';
import { go } from '../lib/router.js';
import { plain, said } from '../lib/text.js';
import { confirm } from './dialog.js';
import { icon } from './icons.js';
import { logIn, logOut } from './login.js';
import { complain, tell } from './notes.js';

const DONE = new Map([
  ['connect', 'is connecting'],
  ['disconnect', 'is disconnected'],
  ['restart', 'is restarting'],
  ['enable', 'is enabled'],
  ['disable', 'is disabled'],
]);

async function change(name, verb) {
  try {
    learnServer(await sendLong('switch', path('servers', name, verb), {}));
    tell(h('span', null, said(name, { class: 'strong' }), ` ${DONE.get(verb)}.`));
  } catch (problem) {
    complain(problem, `${plain(name, 60)}: ${verb} did not work`);
  }
}

async function removeServer(server) {
  const words = [
    'It is taken out of its configuration file, and its process ends.',
    h('p', null, 'File: ', said(server.file ?? 'unknown', { class: 'mono' })),
  ];
  if (!(await confirm(`Remove ${plain(server.name, 60)}?`, words, { yes: 'Remove' }))) return;
  try {
    await remove(path('servers', server.name));
    dropServer(server.name);
    tell(h('span', null, said(server.name, { class: 'strong' }), ' is removed.'));
    go(['servers']);
  } catch (problem) {
    complain(problem, `${plain(server.name, 60)} was not removed`);
  }
}

const ACTIONS = new Map([
  ['login', { label: 'Log in', icon: 'key', act: ({ name }) => logIn(name) }],
  ['review', { label: 'Review', icon: 'shield', act: () => go(['trust']) }],
  ['enable', { label: 'Enable', icon: 'check', act: ({ name }) => change(name, 'enable') }],
  ['connect', { label: 'Connect', icon: 'plug', act: ({ name }) => change(name, 'connect') }],
  ['restart', { label: 'Restart', icon: 'refresh', act: ({ name }) => change(name, 'restart') }],
  ['disconnect', { label: 'Disconnect', icon: 'stop', act: ({ name }) => change(name, 'disconnect') }],
  ['disable', { label: 'Disable', icon: 'dash', act: ({ name }) => change(name, 'disable') }],
  ['logout', { label: 'Log out', icon: 'leave', act: ({ name }) => logOut(name) }],
  ['remove', { label: 'Remove…', icon: 'trash', kind: 'danger', act: removeServer }],
]);

const RUNNING = new Set(['ready', 'starting', 'slow', 'retrying']);
const FIXED = new Set(['pending', 'rejected', 'blocked', 'invalid']);

/** What somebody most likely wants to do now, or null. */
function likely({ state, canLogin }) {
  if (state === 'needs-auth' || state === 'needs-client-registration') return canLogin ? 'login' : null;
  if (state === 'pending' || state === 'rejected') return 'review';
  if (state === 'disabled') return 'enable';
  if (state === 'stopped') return 'connect';
  if (state === 'failed' || state === 'retrying') return 'restart';
  return null;
}

function possible(server) {
  const { state, canLogin, isSignedIn, isBuiltIn } = server;
  const names = [];
  if (state === 'pending' || state === 'rejected') names.push('review');
  if (canLogin) names.push('login');
  if (state === 'disabled') names.push('enable');
  else if (!FIXED.has(state)) {
    if (!RUNNING.has(state)) names.push('connect');
    names.push('restart');
    if (RUNNING.has(state) || state === 'failed') names.push('disconnect');
  }
  if (canLogin && isSignedIn) names.push('logout');
  if (state !== 'disabled' && !isBuiltIn && !FIXED.has(state)) names.push('disable');
  if (!isBuiltIn) names.push('remove');
  return names;
}

/** The items of a menu with all that can be done. */
export function menuItems(server) {
  const names = possible(server);
  const items = names.map((name) => {
    const action = ACTIONS.get(name);
    const label = name === 'login' && server.isSignedIn ? 'Log in again' : action.label;
    return { ...action, label, act: () => action.act(server) };
  });
  const last = names.indexOf('remove');
  if (last > 0) items.splice(last, 0, null);
  return items;
}

/** The likely action as a button: `{ node, update(server) }`. It stays where it is while an action is under way. */
export function likelyButton(server) {
  const node = h('div', { class: 'likely' });
  let shown;
  const update = (next) => {
    const name = likely(next);
    const stamp = `${name} ${next.state}`;
    if (stamp === shown) return;
    shown = stamp;
    node.replaceChildren();
    if (name === null) return;
    const { label, icon: picture, act } = ACTIONS.get(name);
    const press = button(label, {
      icon: icon(picture),
      kind: name === 'login' || next.state === 'pending' ? 'primary' : '',
      'aria-label': `${label}: ${plain(next.name, 60)}`,
    });
    press.addEventListener('click', async () => {
      press.disabled = true;
      await act(next);
      press.disabled = false;
    });
    node.append(press);
  };
  update(server);
  return { node, update };
}

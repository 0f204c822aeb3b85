// One server: what it is, what it offers, what it says.
import { h, put, replace } from '../lib/dom.js';
import { loadServer } from '../lib/loads.js';
import { placeOf } from '../lib/router.js';
import { state, watch } from '../lib/store.js';
import { shortTarget } from '../lib/target.js';
import { plain, said } from '../lib/text.js';
import { likelyButton, menuItems } from '../parts/actions.js';
import { menuButton } from '../parts/menu.js';
import { empty, loading, problemBox } from '../parts/notes.js';
import { reasonPanel } from '../parts/reason.js';
import { serverBadge } from '../parts/states.js';
import { tabStrip } from '../parts/tabs.js';
import { showLogs } from './server-logs.js';
import { showOverview } from './server-overview.js';
import { showPrompts } from './server-prompts.js';
import { showResources } from './server-resources.js';
import { showTools } from './server-tools.js';

const TABS = [
  ['overview', 'Overview', showOverview],
  ['tools', 'Tools', showTools],
  ['resources', 'Resources', showResources],
  ['prompts', 'Prompts', showPrompts],
  ['logs', 'Logs', showLogs],
];

const nameOf = ({ segments }) => segments[1];
const tabOf = ({ segments }) => (TABS.some(([id]) => id === segments[2]) ? segments[2] : 'overview');

function head(server) {
  let current = server;
  const badge = serverBadge(server.state);
  const press = likelyButton(server);
  const reason = reasonPanel(server);
  const target = h('p', { class: 'lead mono' });
  const node = h(
    'div',
    null,
    h(
      'div',
      { class: 'view-head' },
      h(
        'div',
        { class: 'grow' },
        h('p', { class: 'crumbs' }, h('a', { href: '#/servers' }, 'Servers')),
        h('div', { class: 'server-head' }, h('h1', { tabindex: '-1' }, plain(server.name, 80)), badge.node),
        target,
      ),
      h(
        'div',
        { class: 'view-tools' },
        press.node,
        menuButton(`Actions for ${plain(server.name, 60)}`, () => menuItems(current), {
          text: 'Actions',
          class: 'bordered',
        }),
      ),
    ),
    reason.node,
  );
  let shownTarget = null;
  return {
    node,
    update(next) {
      current = next;
      badge.update(next.state);
      press.update(next);
      reason.update(next);
      put(node, 'data-state', plain(next.state, 20));
      if (next.target !== shownTarget) {
        replace(target, next.target && said(shortTarget(next.target), { title: plain(next.target, 1_000) }));
      }
      shownTarget = next.target;
    },
  };
}

function mount(outlet, place, signal) {
  const name = nameOf(place);
  let tab = null;
  let tabEnded = null;
  let follow = null;
  let frame = null;
  let now = place;

  const openTab = () => {
    const wanted = tabOf(now);
    if (tab === wanted && follow) {
      follow(now);
      return;
    }
    tab = wanted;
    tabEnded?.abort();
    tabEnded = new AbortController();
    signal.addEventListener('abort', () => tabEnded.abort(), { once: true, signal: tabEnded.signal });
    frame.tabs.choose(tab);
    replace(frame.tabs.panel);
    const [, , show] = TABS.find(([id]) => id === tab);
    follow = show(frame.tabs.panel, { name, place: now, signal: tabEnded.signal }) ?? null;
  };

  const update = () => {
    const server = state.servers.get(name);
    if (!server) {
      if (frame) replace(outlet, gone(name));
      tabEnded?.abort();
      [frame, tab, follow] = [null, null, null];
      return;
    }
    if (!frame) {
      const tabs = tabStrip(
        'Parts of the server',
        TABS.map(([id, label]) => ({ id, label, href: placeOf(['servers', name, id]) })),
      );
      frame = { head: head(server), tabs };
      replace(outlet, frame.head.node, tabs.node, tabs.panel);
      openTab();
    }
    frame.head.update(server);
    frame.tabs.count('tools', server.tools > 0 ? String(server.tools) : null);
    frame.tabs.count('resources', server.resources > 0 ? String(server.resources) : null);
    frame.tabs.count('prompts', server.prompts > 0 ? String(server.prompts) : null);
  };

  if (!state.servers.has(name)) {
    const heading = h('h1', { tabindex: '-1' }, plain(name, 80));
    const words = h('div', null, loading());
    replace(
      outlet,
      h(
        'div',
        { class: 'view-head' },
        h('div', null, h('p', { class: 'crumbs' }, h('a', { href: '#/servers' }, 'Servers')), heading),
      ),
      words,
    );
    loadServer(name).catch((problem) => {
      if (!signal.aborted) replace(words, problem.status === 404 ? gone(name) : problemBox(problem));
    });
  }
  watch(['servers'], update, signal);
  update();
  return (next) => {
    now = next;
    if (frame) openTab();
  };
}

function gone(name) {
  return empty(
    'server',
    'There is no such server',
    h('p', null, said(name, { class: 'mono' }), ' is not there, or not any more.'),
    h('a', { class: 'button', href: '#/servers' }, 'All servers'),
  );
}

export const serverView = {
  nav: 'servers',
  title: (place) => plain(nameOf(place), 60),
  key: (place) => `server ${nameOf(place)}`,
  mount,
};

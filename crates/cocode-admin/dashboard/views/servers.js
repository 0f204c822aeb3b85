// All servers: how they are, why something is wrong, and what to do about it.
import { h, put, replace, sync, write } from '../lib/dom.js';
import { count, milliseconds, plural, short, span, uptime } from '../lib/format.js';
import { roving } from '../lib/keys.js';
import { refreshStatus } from '../lib/loads.js';
import { placeOf } from '../lib/router.js';
import { runningCalls, serversByName, state, watch } from '../lib/store.js';
import { shortTarget } from '../lib/target.js';
import { plain, said } from '../lib/text.js';
import { likelyButton, menuItems } from '../parts/actions.js';
import { icon } from '../parts/icons.js';
import { menuButton } from '../parts/menu.js';
import { empty, hintList, loading } from '../parts/notes.js';
import { reasonPanel } from '../parts/reason.js';
import { spark } from '../parts/spark.js';
import { serverBadge, serverState } from '../parts/states.js';

const GROUPS = [
  ['attention', 'Needs attention'],
  ['active', 'Active'],
  ['off', 'Off'],
];

const MAX_PROBLEMS = 20;

/** How often the times of the list are brought up to date. */
const CLOCK_MS = 10_000;

function metric(label) {
  const value = h('span', { class: 'metric-value' });
  return {
    node: h('span', { class: 'metric' }, value, h('span', { class: 'metric-label' }, ` ${label}`)),
    value,
  };
}

function row(first) {
  let server = first;
  const badge = serverBadge(first.state);
  const reason = reasonPanel(first);
  const press = likelyButton(first);
  const line = spark();
  const tools = metric('tools');
  const tokens = metric('tokens');
  const latency = metric('p50');
  const facts = h('p', { class: 'server-facts' });
  const calls = h('span', { class: 'metric with-spark' }, line.node, latency.node);
  const numbers = h('div', { class: 'server-numbers' }, tools.node, tokens.node, calls);
  const flight = h('span', { class: 'flight', hidden: true });
  const description = h('p', { class: 'server-about' });
  const node = h(
    'li',
    { class: 'server' },
    h(
      'div',
      { class: 'server-main' },
      h(
        'div',
        { class: 'server-who' },
        h(
          'div',
          { class: 'server-title' },
          h('a', { class: 'server-name', href: placeOf(['servers', first.name]) }, plain(first.name, 80)),
          badge.node,
          flight,
        ),
        description,
        facts,
      ),
      numbers,
      h(
        'div',
        { class: 'server-actions' },
        press.node,
        menuButton(`Actions for ${plain(first.name, 60)}`, () => menuItems(server)),
      ),
    ),
    reason.node,
  );
  let about = null;
  const update = (next) => {
    server = next;
    badge.update(next.state);
    reason.update(next);
    press.update(next);
    put(node, 'data-tone', serverState(next.state).tone);
    put(node, 'data-state', plain(next.state, 20));
    numbers.hidden = !(next.tools > 0) && next.state !== 'ready';
    write(tools.value, count(next.tools));
    write(tokens.value, short(next.tokens));
    const spent = state.latencies.get(next.name);
    write(latency.value, milliseconds(spent?.p50));
    line.update(spent);
    calls.hidden = !(spent?.recent.length > 0);
    // Calls are told as they begin and end; what servers say of themselves is older.
    const running = runningCalls(next.name);
    flight.hidden = running === 0;
    write(flight, `${count(running)} running`);
    const parts = [
      next.transport,
      next.era,
      next.scope,
      next.state === 'ready' && uptime(next) !== null ? `up ${span(uptime(next))}` : null,
      next.reconnects > 0 ? plural(next.reconnects, 'reconnect') : null,
      next.isBuiltIn ? 'built in' : null,
    ];
    const text = JSON.stringify([next.description ?? next.serverInfo?.title, next.target, parts]);
    if (text === about) return;
    about = text;
    const words = next.description ?? next.serverInfo?.title;
    description.hidden = !words;
    replace(description, words && said(words, { limit: 160 }));
    replace(
      facts,
      next.target &&
        said(shortTarget(next.target), { class: 'mono target', title: plain(next.target, 1_000) }),
      h(
        'span',
        null,
        parts
          .filter(Boolean)
          .map((part) => plain(part, 40))
          .join(' · '),
      ),
    );
  };
  update(first);
  return { node, update };
}

/** The state of the gateway in one line. */
function overview() {
  const node = h('p', { class: 'lead' });
  return {
    node,
    update(servers) {
      const ready = servers.filter((server) => server.state === 'ready').length;
      const tools = servers.reduce((sum, server) => sum + (server.tools ?? 0), 0);
      const { sessions, uptimeSeconds, authentication } = state.status ?? {};
      const inFlight = runningCalls();
      const doors = new Map([
        ['open', 'open to this machine'],
        ['tokens', 'tokens needed'],
        ['oauth', 'OAuth needed'],
      ]);
      const words = [
        `${count(ready)} of ${plural(servers.length, 'server')} ready`,
        plural(tools, 'tool'),
        sessions !== undefined && plural(sessions, 'session'),
        inFlight > 0 && `${count(inFlight)} in flight`,
        uptimeSeconds !== undefined && `up ${span(uptimeSeconds)}`,
        doors.get(authentication),
      ];
      write(node, words.filter(Boolean).join(' · '));
    },
  };
}

function group(title) {
  const number = h('span', { class: 'count' });
  const list = h('ul', { class: 'servers' });
  const node = h(
    'section',
    { hidden: true, 'aria-label': title },
    h('h2', { class: 'section-title' }, title, number),
    list,
  );
  return {
    node,
    update(servers) {
      node.hidden = servers.length === 0;
      write(number, count(servers.length));
      sync(list, servers, (server) => server.name, row);
    },
  };
}

/** What is wrong in the files, whether it came up just now or before anybody looked. */
function configProblems() {
  const node = h('div', { class: 'box warn config-problems', role: 'status', hidden: true });
  let shown = null;
  return {
    node,
    update() {
      const told = state.status?.problems;
      const problems = (Array.isArray(told) ? told : []).slice(0, MAX_PROBLEMS);
      const stamp = JSON.stringify(problems);
      if (stamp === shown) return;
      shown = stamp;
      node.hidden = problems.length === 0;
      replace(
        node,
        icon('warning'),
        h(
          'div',
          null,
          h('p', { class: 'strong' }, 'Something is wrong in the configuration files:'),
          hintList(problems),
        ),
      );
    },
  };
}

function matches(server, words) {
  const text = [
    server.name,
    server.description,
    server.target,
    server.state,
    server.transport,
    serverState(server.state).label,
  ]
    .filter((part) => typeof part === 'string')
    .join(' ')
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

function mount(outlet, _place, signal) {
  const lead = overview();
  const config = configProblems();
  const filter = h('input', {
    type: 'search',
    class: 'input filter',
    placeholder: 'Filter',
    'aria-label': 'Filter servers',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const groups = new Map(GROUPS.map(([name, title]) => [name, group(title)]));
  const nothing = h('div');
  const lists = h(
    'div',
    { class: 'groups' },
    [...groups.values()].map(({ node }) => node),
    nothing,
  );
  roving(lists, '.server-name');
  let shownNothing = null;
  const explain = (kind, content) => {
    if (kind === shownNothing) return;
    shownNothing = kind;
    replace(nothing, content?.());
  };
  const update = () => {
    const servers = serversByName();
    lead.update(servers);
    config.update();
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = servers.filter((server) => matches(server, words));
    for (const [name, part] of groups)
      part.update(shown.filter((server) => serverState(server.state).group === name));
    if (!state.loaded.has('servers')) explain('loading', () => loading());
    else if (servers.length === 0)
      explain('none', () =>
        empty(
          'server',
          'No servers yet',
          'Add the first one: a program on this machine, or an address.',
          h(
            'a',
            { class: 'button primary', href: '#/add-server' },
            icon('plus'),
            h('span', null, 'Add a server'),
          ),
        ),
      );
    else if (shown.length === 0)
      explain('filtered', () =>
        empty('search', 'No server fits', 'The filter looks at names, addresses, commands and states.'),
      );
    else explain(null);
  };
  filter.addEventListener('input', update);
  replace(
    outlet,
    h(
      'div',
      { class: 'view-head' },
      h('div', null, h('h1', { tabindex: '-1' }, 'Servers'), lead.node),
      h(
        'div',
        { class: 'view-tools' },
        filter,
        h(
          'a',
          { class: 'button primary', href: '#/add-server' },
          icon('plus'),
          h('span', null, 'Add server'),
        ),
      ),
    ),
    config.node,
    lists,
  );
  watch(['servers', 'status', 'latencies', 'calls'], update, signal);
  const timer = setInterval(() => {
    refreshStatus();
    update();
  }, CLOCK_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  update();
}

export const serversView = { nav: 'servers', title: () => 'Servers', key: () => 'servers', mount };

// What a server is: facts, the latencies of its calls, its last calls.
import { h, replace, sync, write } from '../lib/dom.js';
import { clock, count, milliseconds, plural, span, uptime } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { state, watch } from '../lib/store.js';
import { plain, said } from '../lib/text.js';
import { addressLink, readAddress } from '../parts/links.js';
import { fittingSpan, plotCard } from '../parts/plot.js';
import { callBadge } from '../parts/states.js';

const MAX_CALLS = 8;
const TICK_MS = 1_000;

const SHARING = new Map([
  ['shared', 'All clients share it'],
  ['one-at-a-time', 'Shared, one request at a time'],
  ['per-session', 'Each session has its own'],
]);

/** Facts in pairs; those that are not known are left out. */
function facts(server) {
  const { serverInfo, revision, era } = server;
  const isAddress = readAddress(server.target) !== null;
  const up = uptime(server);
  // Of what was never reached, nothing is known yet.
  const isKnown = server.tools > 0 || server.state === 'ready';
  return [
    ['Description', server.description && said(server.description, { limit: 600 })],
    [
      isAddress ? 'Address' : 'Command',
      server.target &&
        (isAddress ? addressLink(server.target) : said(server.target, { class: 'mono', limit: 1_000 })),
    ],
    ['Transport', server.transport && plain(server.transport, 40)],
    [
      'Program',
      serverInfo &&
        said([serverInfo.title ?? serverInfo.name, serverInfo.version].filter(Boolean).join(' '), {
          limit: 200,
        }),
    ],
    [
      'Protocol',
      (revision || era) &&
        [revision, era]
          .filter(Boolean)
          .map((part) => plain(part, 40))
          .join(', '),
    ],
    [
      'Tools',
      !isKnown
        ? null
        : `${count(server.tools)}${server.hiddenTools > 0 ? `, ${count(server.hiddenTools)} more hidden by rules` : ''}`,
    ],
    ['Cost', isKnown ? `${plural(server.tokens, 'token')} of a context window` : null],
    [
      'Shared',
      server.sharing && [
        SHARING.get(server.sharing) ?? plain(server.sharing, 40),
        server.sharingReason &&
          h('span', { class: 'faint' }, ' (', said(server.sharingReason, { limit: 300 }), ')'),
      ],
    ],
    ['Login', server.canLogin ? (server.isSignedIn ? 'Logged in' : 'Not logged in') : null],
    ['Up', server.state === 'ready' && up !== null ? span(up) : null],
    ['Ready after', server.readyMilliseconds === undefined ? null : milliseconds(server.readyMilliseconds)],
    ['Reconnects', server.reconnects > 0 ? count(server.reconnects) : null],
    ['Process', server.pid && String(server.pid)],
    [
      'Configured',
      server.file && [plain(server.scope ?? '', 20), ' ', said(server.file, { class: 'mono', limit: 300 })],
    ],
  ].filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '');
}

function callLine(first) {
  const badge = callBadge(first.state);
  const took = h('td', { class: 'right tabular' });
  const node = h(
    'tr',
    null,
    h('td', { class: 'mono faint' }, clock(first.at)),
    h('td', null, said(first.name, { class: 'mono', limit: 80 })),
    h('td', null, badge.node),
    took,
  );
  const update = (call) => {
    badge.update(call.state);
    write(took, call.state === 'running' ? '' : milliseconds(call.milliseconds));
  };
  update(first);
  return { node, update };
}

function lastCalls(name) {
  const body = h('tbody');
  const words = ['Time', 'Name', 'State', 'Duration'].map((word) => h('th', { scope: 'col' }, word));
  const table = h(
    'table',
    { class: 'table compact' },
    h('thead', { class: 'hidden' }, h('tr', null, words)),
    body,
  );
  const none = h(
    'p',
    { class: 'faint' },
    'None yet. ',
    h('a', { href: placeOf(['servers', name, 'tools']) }, 'Try one of its tools'),
    '.',
  );
  const node = h(
    'section',
    { class: 'card', 'aria-label': 'Last calls' },
    h(
      'div',
      { class: 'card-head' },
      h('h2', { class: 'card-title' }, 'Last calls'),
      h('a', { href: placeOf(['calls'], { server: name }) }, 'All calls'),
    ),
    none,
    table,
  );
  const update = () => {
    const mine = [...state.calls.values()].filter((call) => call.server === name);
    sync(body, mine.slice(-MAX_CALLS).reverse(), (call) => call.id, callLine);
    none.hidden = mine.length > 0;
    table.hidden = mine.length === 0;
  };
  return { node, update };
}

export function showOverview(panel, { name, signal }) {
  const list = h('dl', { class: 'facts' });
  const plot = plotCard(plain(name, 60), h('h2', { class: 'card-title' }, 'Latency'), {
    spanSeconds: () => fittingSpan([state.latencies.get(name)]),
  });
  const calls = lastCalls(name);
  replace(
    panel,
    h(
      'div',
      { class: 'overview' },
      h('section', { class: 'card', 'aria-label': 'Facts' }, list),
      h('div', { class: 'stack' }, plot.node, calls.node),
    ),
  );
  let shown = null;
  const update = () => {
    const server = state.servers.get(name);
    if (!server) return;
    // Whoever is about to copy a fact does not lose the selection because a call has ended.
    const { heardAt: _, inFlight: __, uptimeSeconds: ___, ...lasting } = server;
    const stamp = JSON.stringify([lasting, span(uptime(server) ?? 0)]);
    if (stamp === shown) return;
    shown = stamp;
    replace(
      list,
      facts(server).map(([word, value]) => h('div', null, h('dt', null, word), h('dd', null, value))),
    );
  };
  const updateCalls = () => {
    plot.update(state.latencies.get(name) ?? { count: 0, errors: 0, recent: [] });
    calls.update();
  };
  watch(['servers'], update, signal);
  watch(['calls', 'latencies'], updateCalls, signal);
  const timer = setInterval(() => plot.tick(), TICK_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  update();
  updateCalls();
}

// What a server is: facts, the latencies of its calls, its last calls.
import { h, replace } from '../lib/dom.js';
import { clock, count, milliseconds, plural, span, uptime } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { state, watch } from '../lib/store.js';
import { plain, said } from '../lib/text.js';
import { addressLink, readAddress } from '../parts/links.js';
import { plotCard } from '../parts/plot.js';
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
      server.tools === undefined
        ? null
        : `${count(server.tools)}${server.hiddenTools > 0 ? `, ${count(server.hiddenTools)} more hidden by rules` : ''}`,
    ],
    ['Cost', server.tokens === undefined ? null : `${plural(server.tokens, 'token')} of a context window`],
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

function callLine(call) {
  const badge = callBadge(call.state);
  return h(
    'tr',
    null,
    h('td', { class: 'mono faint' }, clock(call.at)),
    h('td', null, said(call.name, { class: 'mono', limit: 80 })),
    h('td', null, badge.node),
    h('td', { class: 'right' }, milliseconds(call.milliseconds)),
  );
}

export function showOverview(panel, { name, signal }) {
  const list = h('dl', { class: 'facts' });
  const plot = plotCard(plain(name, 60), h('h2', { class: 'card-title' }, 'Latency'));
  const calls = h('div', { class: 'card' });
  replace(
    panel,
    h(
      'div',
      { class: 'overview' },
      h('section', { class: 'card', 'aria-label': 'Facts' }, list),
      h('div', { class: 'stack' }, plot.node, calls),
    ),
  );
  const update = () => {
    const server = state.servers.get(name);
    if (!server) return;
    replace(
      list,
      facts(server).map(([word, value]) => h('div', null, h('dt', null, word), h('dd', null, value))),
    );
  };
  const updateCalls = () => {
    plot.update(state.latencies.get(name) ?? { count: 0, errors: 0, recent: [] });
    const last = [...state.calls.values()]
      .filter((call) => call.server === name)
      .slice(-MAX_CALLS)
      .reverse();
    replace(
      calls,
      h(
        'div',
        { class: 'card-head' },
        h('h2', { class: 'card-title' }, 'Last calls'),
        h('a', { href: placeOf(['calls'], { server: name }) }, 'All calls'),
      ),
      last.length === 0
        ? h('p', { class: 'faint' }, 'None yet.')
        : h(
            'table',
            { class: 'table compact' },
            h(
              'thead',
              { class: 'hidden' },
              h(
                'tr',
                null,
                ['Time', 'Name', 'State', 'Duration'].map((word) => h('th', null, word)),
              ),
            ),
            h('tbody', null, last.map(callLine)),
          ),
    );
  };
  watch(['servers'], update, signal);
  watch(['calls', 'latencies'], updateCalls, signal);
  const timer = setInterval(() => plot.tick(), TICK_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  update();
  updateCalls();
}

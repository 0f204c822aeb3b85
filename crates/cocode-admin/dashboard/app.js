// The dashboard: who is signed in, which view is shown, and what keeps them up to date.
import { get, onSignedOut, send, useCsrf } from './lib/api.js';
import { Feed } from './lib/feed.js';
import { shortcut } from './lib/keys.js';
import { loadAll, onLoadProblem, reloadAll, takeEvent } from './lib/loads.js';
import { Router, go } from './lib/router.js';
import { forgetRuns } from './lib/runs.js';
import { forget, state, touch } from './lib/store.js';
import { openHelp } from './parts/help.js';
import { complain, loading, problemBox } from './parts/notes.js';
import { search } from './parts/palette.js';
import { prepareShell, showPlace, toggleTheme } from './parts/shell.js';
import { button, h, replace } from './lib/dom.js';
import { addServerView } from './views/add-server.js';
import { budgetView } from './views/budget.js';
import { callsView } from './views/calls.js';
import { inboxView } from './views/inbox.js';
import { serverView } from './views/server.js';
import { serversView } from './views/servers.js';
import { showSignIn } from './views/sign-in.js';
import { tokensView } from './views/tokens.js';
import { toolsView } from './views/tools.js';
import { trustView } from './views/trust.js';

const main = document.getElementById('main');
let feed = null;

const views = new Map([
  ['', serversView],
  ['servers', { ...serverOrServers() }],
  ['add-server', addServerView],
  ['calls', callsView],
  ['tools', toolsView],
  ['inbox', inboxView],
  ['trust', trustView],
  ['tokens', tokensView],
  ['budget', budgetView],
]);

/** `#/servers` is the list, `#/servers/NAME` one of them. */
function serverOrServers() {
  const chosen = ({ segments }) => (segments.length > 1 ? serverView : serversView);
  return {
    nav: 'servers',
    title: (place) => chosen(place).title(place),
    key: (place) => chosen(place).key(place),
    mount: (outlet, place, signal) => chosen(place).mount(outlet, place, signal),
  };
}

const router = new Router(main, views, (view, place) => showPlace(view.nav, view.title(place)));

function showSession(kind) {
  document.body.dataset.session = kind;
}

function startFeed() {
  let wasLive = false;
  feed = new Feed({
    onEvent: takeEvent,
    onState(next) {
      state.feed = next;
      touch('feed');
      if (next.state !== 'live') return;
      // What happened during a loss may have left no trace in the stream.
      if (wasLive) reloadAll().catch(complain);
      wasLive = true;
    },
  }).start();
}

/**
 * Whether somebody has signed in here before. The cookie cannot be seen by this page, and asking in vain would be an
 * error in the eyes of the browser.
 */
const SIGNED_IN = 'cocode.signed-in';

function remember(isIn) {
  try {
    if (isIn) localStorage.setItem(SIGNED_IN, 'yes');
    else localStorage.removeItem(SIGNED_IN);
  } catch {
    // Without storage the next visit asks for a code.
  }
}

function wasSignedIn() {
  try {
    return localStorage.getItem(SIGNED_IN) === 'yes';
  } catch {
    return true;
  }
}

async function begin(session, { moved = false } = {}) {
  remember(true);
  state.session = session;
  useCsrf(session.csrf);
  showSession('in');
  touch('session');
  startFeed();
  router.show({ moved });
  await loadAll().catch((problem) => complain(problem, 'Not everything could be loaded'));
}

function end() {
  feed?.stop();
  feed = null;
  useCsrf(null);
  remember(false);
  forgetRuns();
  forget();
  router.clear();
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
  replace(document.getElementById('notes'));
  showSession('out');
  showPlace(null, 'Sign in');
  showSignIn(main, (session) => begin(session, { moved: true }));
}

async function signOut() {
  try {
    await send('sign-out', {});
  } catch (problem) {
    if (problem.status !== 401) {
      complain(problem, 'Not signed out');
      return;
    }
  }
  end();
}

async function start() {
  if (!wasSignedIn()) {
    end();
    return;
  }
  replace(main, loading());
  try {
    await begin(await get('session', { quiet: true }));
  } catch (problem) {
    if (problem.status === 401) {
      end();
      return;
    }
    showSession('out');
    replace(
      main,
      h(
        'div',
        { class: 'sign-in' },
        h('h1', null, 'cocode'),
        problemBox(problem),
        button('Try again', { kind: 'primary', on: { click: start } }),
      ),
    );
  }
}

// That the gateway cannot be reached is said by the banner, once.
onLoadProblem((problem) => {
  if (problem.code !== 'unreachable') complain(problem, 'Not everything is up to date');
});

onSignedOut(() => {
  if (state.session) end();
});

shortcut('/', 'Search tools', search);
shortcut('g s', 'Go to servers', () => go(['servers']));
shortcut('g c', 'Go to calls', () => go(['calls']));
shortcut('g t', 'Go to tools', () => go(['tools']));
shortcut('g i', 'Go to the inbox', () => go(['inbox']));
shortcut('g r', 'Go to trust', () => go(['trust']));
shortcut('g k', 'Go to tokens', () => go(['tokens']));
shortcut('g b', 'Go to the budget', () => go(['budget']));
shortcut('a', 'Add a server', () => go(['add-server']));
shortcut('t', 'Switch between light and dark', toggleTheme);
shortcut('?', 'Show this help', openHelp);

prepareShell({ feed: () => feed, signOut });
start();

// Logging in to a server: the address of its sign-in page is shown, opened by a click, and waited for.
import { button, h, replace } from '../lib/dom.js';
import { get, path, remove, send, sendLong } from '../lib/api.js';
import { loadServer } from '../lib/loads.js';
import { plain, said } from '../lib/text.js';
import { confirm, openDialog } from './dialog.js';
import { icon } from './icons.js';
import { addressBox } from './links.js';
import { complain, loading, problemBox, tell } from './notes.js';

const LOOK_MS = 1_000;

/** Waits until a login is over, as long as somebody looks. `onLook` sees how far it is, from the beginning on. */
async function outcome(name, first, { signal, onLook }) {
  let login = first;
  while (login?.state === 'waiting' && !signal.aborted) {
    onLook(login);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (signal.aborted) break;
    login = await get(path('servers', name, 'login'), { signal });
  }
  return login;
}

/** A way for those whose browser is on another machine: the address that it ended at is pasted. */
function pasteForm(name, onProblem) {
  const input = h('input', {
    class: 'input mono',
    name: 'redirect',
    type: 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    placeholder: 'http://127.0.0.1:…/callback?code=…',
  });
  const form = h(
    'form',
    { class: 'row' },
    h('label', { class: 'grow' }, h('span', { class: 'label' }, 'Address the browser ended at'), input),
    h('button', { type: 'submit', class: 'button' }, 'Complete'),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      await send(path('servers', name, 'login', 'complete'), { redirect: input.value.trim() });
    } catch (problem) {
      onProblem(problem);
    }
  });
  return h(
    'details',
    { class: 'quiet-details' },
    h('summary', null, 'The sign-in page is on another machine?'),
    h(
      'p',
      { class: 'faint' },
      'Sign in there. The browser ends at an address that it cannot open: copy the address here.',
    ),
    form,
  );
}

/** Shows where to sign in, as soon as that is known; gives what wants to see each look. */
function guide(name, place) {
  const trouble = h('div', { class: 'trouble' });
  const waits = h(
    'p',
    { class: 'loading', hidden: true, role: 'status' },
    icon('spin', { class: 'turning' }),
    'Waiting until you have signed in…',
  );
  const onOpen = () => {
    waits.hidden = false;
  };
  let shown = null;
  return ({ authorizationUrl }) => {
    if (authorizationUrl === undefined || authorizationUrl === shown) return;
    shown = authorizationUrl;
    replace(
      place,
      h('p', null, 'Sign in with your browser. This is the page that will be opened:'),
      addressBox(authorizationUrl, { label: 'Open sign-in page', onOpen }),
      waits,
      trouble,
      pasteForm(name, (problem) => replace(trouble, problemBox(problem))),
    );
    place.querySelector('a.button')?.focus();
  };
}

async function run(name, place, close, signal) {
  try {
    const login = await sendLong('switch', path('servers', name, 'login'), {}, { signal });
    const end = await outcome(name, login, { signal, onLook: guide(name, place) });
    if (signal.aborted) return;
    if (end?.state !== 'done')
      throw Object.assign(new Error(end?.message ?? 'The login did not succeed.'), { hints: [] });
    close(true);
  } catch (problem) {
    if (signal.aborted) return;
    replace(
      place,
      problemBox(problem),
      h(
        'div',
        { class: 'actions end' },
        button('Try again', {
          kind: 'primary',
          icon: icon('refresh'),
          on: {
            click: () => {
              replace(place, loading('Starting the login'));
              run(name, place, close, signal);
            },
          },
        }),
      ),
    );
  }
}

/** Opens the dialog in which somebody logs in to a server. */
export async function logIn(name) {
  const ended = new AbortController();
  const isDone = await openDialog(`Log in to ${plain(name, 60)}`, (close) => {
    const place = h('div', { class: 'stack' }, loading('Starting the login'));
    run(name, place, close, ended.signal);
    return place;
  });
  ended.abort();
  if (!isDone) return;
  tell(h('span', null, 'Logged in to ', said(name, { class: 'strong' }), '.'));
  await loadServer(name).catch(complain);
}

/** Forgets what a server let us in with. */
export async function logOut(name) {
  const isMeant = await confirm(
    `Log out of ${plain(name, 60)}?`,
    'Its tokens are removed from this machine. Whoever wants to use the server has to log in again.',
    { yes: 'Log out' },
  );
  if (!isMeant) return;
  try {
    await remove(path('servers', name, 'credentials'));
    tell(h('span', null, 'Logged out of ', said(name, { class: 'strong' }), '.'));
    await loadServer(name);
  } catch (problem) {
    complain(problem, 'Not logged out');
  }
}

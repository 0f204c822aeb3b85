// Signing in: the code that the gateway printed is exchanged for a session.
import { h, replace } from '../lib/dom.js';
import { get, send } from '../lib/api.js';
import { readHash } from '../lib/router.js';
import { icon } from '../parts/icons.js';
import { problemBox } from '../parts/notes.js';

/** A code in the address (`#/sign-in?code=…`) is taken out of it at once, so that it stays in no history. */
function codeOfAddress() {
  const { segments, query } = readHash(location.hash);
  if (segments[0] !== 'sign-in') return '';
  const code = query.get('code') ?? '';
  history.replaceState(null, '', '#/servers');
  return code;
}

/** Shows the form; `onSession` gets the session once the code was taken. */
export function showSignIn(outlet, onSession) {
  const trouble = h('div', { class: 'trouble' });
  const input = h('input', {
    id: 'code',
    class: 'input code-input',
    name: 'code',
    type: 'text',
    autocomplete: 'one-time-code',
    autocapitalize: 'off',
    spellcheck: 'false',
    required: true,
    value: codeOfAddress(),
    'aria-describedby': 'code-hint',
  });
  const press = h('button', { type: 'submit', class: 'button primary wide' }, 'Sign in');
  const form = h(
    'form',
    { class: 'stack' },
    h('label', { for: 'code', class: 'label' }, 'One-time code'),
    input,
    h(
      'p',
      { id: 'code-hint', class: 'faint' },
      'The gateway printed it when it started. It is good once, and for a few minutes.',
    ),
    trouble,
    press,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    press.disabled = true;
    replace(trouble);
    try {
      await send('sign-in', { code: input.value.trim() }, { quiet: true });
      const session = await get('session', { quiet: true });
      replace(outlet);
      onSession(session);
    } catch (problem) {
      replace(trouble, problemBox(problem));
      input.select();
      input.focus();
    } finally {
      press.disabled = false;
    }
  });
  replace(
    outlet,
    h(
      'div',
      { class: 'sign-in' },
      h('div', { class: 'sign-in-mark' }, icon('key')),
      h('h1', { tabindex: '-1' }, 'Sign in to cocode'),
      form,
      h(
        'details',
        { class: 'quiet-details' },
        h('summary', null, 'Where is the code?'),
        h(
          'p',
          null,
          'In the terminal or the log of ',
          h('code', null, 'cocode gateway'),
          ', beside the address of this page. It is good once; another is made by ',
          h('code', null, 'cocode gateway code'),
          ', where the gateway runs.',
        ),
      ),
    ),
  );
  input.focus();
}

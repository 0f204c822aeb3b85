// Dialogs: modal, closed by Escape, the focus going back to where it was.
import { button, h, uniqueId } from '../lib/dom.js';
import { icon } from './icons.js';

/** Opens a dialog. `build(close)` gives its content; the promise is what it was closed with. */
export function openDialog(title, build, { class: extra = '', signal } = {}) {
  return new Promise((resolve) => {
    const id = uniqueId('dialog');
    const before = document.activeElement;
    let answer;
    const close = (value) => {
      answer = value;
      dialog.close();
    };
    const dialog = h('dialog', { class: `dialog ${extra}`.trim(), 'aria-labelledby': id });
    const bar = h(
      'header',
      { class: 'dialog-bar' },
      h('h2', { id }, title),
      h(
        'button',
        { type: 'button', class: 'button quiet square', 'aria-label': 'Close', on: { click: () => close() } },
        icon('cross'),
      ),
    );
    dialog.append(bar, h('div', { class: 'dialog-body' }, build(close)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
      resolve(answer);
    });
    // A press beside the dialog closes it, but not one that began inside, as when text is selected.
    let began = null;
    dialog.addEventListener('pointerdown', (event) => {
      began = event.target;
    });
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog && began === dialog) close();
    });
    signal?.addEventListener('abort', () => close(), { once: true });
    // What it is about is not there any more.
    const leave = () => close();
    window.addEventListener('hashchange', leave, { once: true });
    dialog.addEventListener('close', () => window.removeEventListener('hashchange', leave));
    document.body.append(dialog);
    dialog.showModal();
    (
      dialog.querySelector('[autofocus]') ??
      dialog.querySelector('.dialog-body :is(button, input, select, textarea, a[href])')
    )?.focus();
  });
}

/** Asks whether something is meant. Gives true only if it is confirmed. */
export async function confirm(title, words, { yes, kind = 'danger' }) {
  const answer = await openDialog(
    title,
    (close) => [
      ...[words].flat().map((part) => (part instanceof Node ? part : h('p', null, part))),
      h(
        'div',
        { class: 'actions end' },
        button('Keep as it is', { autofocus: true, on: { click: () => close(false) } }),
        button(yes, { kind, on: { click: () => close(true) } }),
      ),
    ],
    { class: 'narrow' },
  );
  return answer === true;
}

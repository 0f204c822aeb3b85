// Shortcuts: single keys, and two keys one after the other. They can be switched off, since some tools type letters.

const SEQUENCE_MS = 1_200;
const STORED = 'cocode.shortcuts';

const shortcuts = new Map();
let first = null;
let firstAt = 0;

function stored() {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

let isOn = stored() !== 'off';

export const areShortcutsOn = () => isOn;

export function switchShortcuts(on) {
  isOn = on;
  try {
    localStorage.setItem(STORED, on ? 'on' : 'off');
  } catch {
    // Without storage the choice holds as long as the page does.
  }
}

/** `shortcut('g s', 'Go to Servers', action)`; what has no words is not in the help. */
export function shortcut(keys, words, action) {
  shortcuts.set(keys, { words, action });
}

/** All shortcuts, for the help. */
export const allShortcuts = () =>
  [...shortcuts].map(([keys, { words }]) => ({ keys, words })).filter(({ words }) => words);

function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input, textarea, select, [role="listbox"], [role="menu"] *'))
  );
}

function onKey(event) {
  if (!isOn || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing)
    return;
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
  const sequence = first !== null && event.timeStamp - firstAt < SEQUENCE_MS ? `${first} ${event.key}` : null;
  const found = (sequence && shortcuts.get(sequence)) ?? shortcuts.get(event.key);
  first = null;
  if (found) {
    event.preventDefault();
    found.action();
  } else if (
    event.key.length === 1 &&
    [...shortcuts.keys()].some((keys) => keys.startsWith(`${event.key} `))
  ) {
    first = event.key;
    firstAt = event.timeStamp;
  }
}

document.addEventListener('keydown', onKey);

/** Lets arrows move the focus among elements, of which only one is reached by Tab. */
export function roving(container, selector, { horizontal = false, onMove = () => {} } = {}) {
  const [back, forth] = horizontal ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown'];
  container.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !event.target.matches?.(selector)) return;
    const all = [...container.querySelectorAll(selector)].filter((element) => element.offsetParent !== null);
    const at = all.indexOf(event.target);
    const to = { [back]: at - 1, [forth]: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || !all[to]) return;
    event.preventDefault();
    if (event.target.tabIndex === 0 && all[to].tabIndex === -1) {
      event.target.tabIndex = -1;
      all[to].tabIndex = 0;
    }
    all[to].focus();
    onMove(all[to]);
  });
}

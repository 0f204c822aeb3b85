// A button that opens a menu: arrows move, Escape and a press elsewhere close, the focus goes back to the button.
import { h, uniqueId } from '../lib/dom.js';
import { icon } from './icons.js';

const GAP = 4;

function place(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  const below = at.bottom + GAP + size.height <= innerHeight || at.top < size.height + GAP;
  menu.style.top = `${Math.max(GAP, below ? Math.min(at.bottom + GAP, innerHeight - size.height - GAP) : at.top - GAP - size.height)}px`;
  menu.style.left = `${Math.max(GAP, Math.min(at.right - size.width, innerWidth - size.width - GAP))}px`;
}

function open(anchor, items) {
  const label = anchor.getAttribute('aria-label') ?? anchor.textContent;
  const menu = h('div', {
    class: 'menu',
    role: 'menu',
    popover: 'auto',
    id: uniqueId('menu'),
    'aria-label': label,
  });
  const shut = () => menu.hidePopover();
  for (const item of items) {
    if (item === null) {
      menu.append(h('div', { role: 'separator', class: 'separator' }));
      continue;
    }
    menu.append(
      h(
        'button',
        {
          type: 'button',
          role: item.isChecked === undefined ? 'menuitem' : 'menuitemradio',
          'aria-checked': item.isChecked === undefined ? null : String(item.isChecked),
          class: `menu-item ${item.kind ?? ''}`.trim(),
          tabindex: '-1',
          on: {
            click: () => {
              shut();
              item.act();
            },
          },
        },
        icon(item.icon ?? 'right'),
        h('span', null, item.label),
        item.isChecked && icon('check'),
      ),
    );
  }
  const buttons = [...menu.querySelectorAll('button')];
  menu.addEventListener('keydown', (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = {
      ArrowDown: (at + 1) % buttons.length,
      ArrowUp: (at + buttons.length - 1) % buttons.length,
      Home: 0,
      End: buttons.length - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      buttons[to].focus();
    } else if (event.key === 'Tab') {
      shut();
    } else if (event.key.length === 1 && /\S/.test(event.key)) {
      const rotated = [...buttons.slice(at + 1), ...buttons.slice(0, at + 1)];
      rotated
        .find((one) => one.textContent.trim().toLowerCase().startsWith(event.key.toLowerCase()))
        ?.focus();
    }
  });
  menu.addEventListener('toggle', (event) => {
    if (event.newState === 'open') return;
    const hadFocus = menu.contains(document.activeElement) || document.activeElement === document.body;
    menu.remove();
    anchor.setAttribute('aria-expanded', 'false');
    if (hadFocus && anchor.isConnected) anchor.focus({ preventScroll: true });
  });
  // Within an open dialog the menu has to be part of it, to be reached at all.
  (anchor.closest('dialog') ?? document.body).append(menu);
  menu.showPopover();
  place(menu, anchor);
  anchor.setAttribute('aria-expanded', 'true');
  buttons[0]?.focus();
}

/** `items()` gives `{ label, icon, kind, act }`, or null for a line between two groups, at the time of opening. */
export function menuButton(label, items, { text, picture = 'more', class: extra = '' } = {}) {
  const node = h(
    'button',
    {
      type: 'button',
      class: `button quiet ${text ? '' : 'square'} ${extra}`.trim(),
      'aria-label': label,
      'aria-haspopup': 'menu',
      'aria-expanded': 'false',
    },
    icon(picture),
    text && h('span', null, text),
  );
  node.addEventListener('click', () => open(node, items()));
  node.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    open(node, items());
  });
  return node;
}

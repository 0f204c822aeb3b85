// Tabs that are places: each has an address, arrows move between them.
import { h, put, uniqueId, write } from '../lib/dom.js';
import { roving } from '../lib/keys.js';

/** `tabs`: [{ id, label, href }]. Gives `{ node, panel, choose(id), count(id, text) }`. */
export function tabStrip(name, tabs) {
  const strip = h('div', { class: 'tabs', role: 'tablist', 'aria-label': name });
  const panel = h('div', { class: 'tab-panel', role: 'tabpanel', id: uniqueId('panel') });
  const items = new Map();
  for (const { id, label, href } of tabs) {
    const number = h('span', { class: 'count', hidden: true });
    const tab = h(
      'a',
      {
        class: 'tab',
        role: 'tab',
        id: `tab-${id}`,
        href,
        tabindex: '-1',
        'aria-selected': 'false',
        'aria-controls': panel.id,
      },
      h('span', null, label),
      number,
    );
    items.set(id, { tab, number });
    strip.append(tab);
  }
  roving(strip, '.tab', { horizontal: true, onMove: (tab) => tab.click() });
  strip.addEventListener('keydown', (event) => {
    if (event.key === ' ' && event.target.matches('.tab')) {
      event.preventDefault();
      event.target.click();
    }
  });
  return {
    node: strip,
    panel,
    choose(chosen) {
      for (const [id, { tab }] of items) {
        put(tab, 'aria-selected', String(id === chosen));
        put(tab, 'tabindex', id === chosen ? '0' : '-1');
        if (id === chosen) {
          put(panel, 'aria-labelledby', tab.id);
          if (strip.scrollWidth > strip.clientWidth)
            tab.scrollIntoView({ inline: 'center', block: 'nearest' });
        }
      }
    },
    count(id, text) {
      const { number } = items.get(id);
      number.hidden = text === null;
      write(number, text ?? '');
    },
  };
}

// The help: which keys do what, and a switch for those to whom single keys are in the way.
import { h } from '../lib/dom.js';
import { allShortcuts, areShortcutsOn, switchShortcuts } from '../lib/keys.js';
import { openDialog } from './dialog.js';

const EVERYWHERE = [
  { keys: '↑ ↓', words: 'Move in lists and menus' },
  { keys: '← →', words: 'Move between tabs' },
  { keys: 'Ctrl Enter', words: 'Run the tool, send the answer' },
  { keys: 'Esc', words: 'Close what is open' },
];

const keyCaps = (keys) => keys.split(' ').map((key) => h('kbd', null, key));

export function openHelp() {
  openDialog('Keyboard', () => {
    const box = h('input', {
      type: 'checkbox',
      class: 'switch',
      role: 'switch',
      checked: areShortcutsOn(),
      id: 'shortcuts-on',
    });
    box.addEventListener('change', () => switchShortcuts(box.checked));
    const rows = [...allShortcuts(), ...EVERYWHERE];
    return [
      h(
        'dl',
        { class: 'keys' },
        rows.map(({ keys, words }) => h('div', null, h('dt', null, keyCaps(keys)), h('dd', null, words))),
      ),
      h(
        'label',
        { class: 'switch-line', for: 'shortcuts-on' },
        box,
        h('span', null, 'Shortcuts of single keys'),
      ),
    ];
  });
}

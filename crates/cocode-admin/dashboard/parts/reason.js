// Why a server is not as it should be: the words, what to do, and what it printed last.
import { h, replace } from '../lib/dom.js';
import { codeBlock, said, withCode, withoutColours } from '../lib/text.js';
import { icon } from './icons.js';
import { hintList } from './notes.js';
import { serverState } from './states.js';

const MAX_STDERR_LINES = 200;

/** `{ node, update(server) }`; empty while nothing is wrong. */
export function reasonPanel(server) {
  const node = h('div', { class: 'reason', hidden: true });
  let shown = null;
  const update = ({ reason, state }) => {
    const text = JSON.stringify([reason ?? null, state]);
    if (text === shown) return;
    shown = text;
    node.hidden = !reason;
    if (!reason) return;
    const { tone } = serverState(state);
    const stderr = (Array.isArray(reason.stderr) ? reason.stderr : [])
      .slice(-MAX_STDERR_LINES)
      .map(withoutColours);
    const isOpen = node.querySelector('details')?.open ?? false;
    node.className = `reason box ${tone === 'good' || tone === 'off' ? 'info' : tone}`;
    replace(
      node,
      icon('warning'),
      h(
        'div',
        null,
        h(
          'p',
          null,
          withCode(reason.message, 600),
          typeof reason.code === 'string' &&
            reason.code !== state && [' ', said(reason.code, { class: 'reason-code', limit: 60 })],
        ),
        hintList(reason.hints),
        stderr.length > 0 &&
          h(
            'details',
            { open: isOpen },
            h('summary', null, `Last lines it wrote (${stderr.length})`),
            codeBlock(stderr.join('\n'), { 'aria-label': 'Last lines of standard error' }),
          ),
      ),
    );
  };
  update(server);
  return { node, update };
}

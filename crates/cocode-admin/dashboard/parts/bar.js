// A bar that says how much of something there is. The number stands beside it, so the bar is silent.
import { put, svg } from '../lib/dom.js';

const HEIGHT = 6;

/** `{ node, update(share) }`, the share being between 0 and 1. */
export function bar(height = HEIGHT) {
  const fill = svg('rect', { class: 'bar-fill', height, rx: height / 2, width: '0' });
  const node = svg(
    'svg',
    { class: 'bar', width: '100%', height, 'aria-hidden': 'true' },
    svg('rect', { class: 'bar-track', width: '100%', height, rx: height / 2 }),
    fill,
  );
  return {
    node,
    update(share) {
      const bounded = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
      put(fill, 'width', bounded === 0 ? '0' : `${Math.max(0.8, bounded * 100).toFixed(2)}%`);
      put(node, 'class', share > 1 ? 'bar over' : 'bar');
    },
  };
}

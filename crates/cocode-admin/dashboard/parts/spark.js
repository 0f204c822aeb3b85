// The last calls of a server as small bars, for a row of a list. The number beside it says the same.
import { put, svg } from '../lib/dom.js';

const BARS = 24;
const WIDTH = 4;
const HEIGHT = 18;

/** `{ node, update(latency) }` */
export function spark() {
  const node = svg('svg', {
    class: 'spark',
    viewBox: `0 0 ${BARS * WIDTH} ${HEIGHT}`,
    width: BARS * WIDTH,
    height: HEIGHT,
    'aria-hidden': 'true',
  });
  const bars = Array.from({ length: BARS }, () => svg('rect', { width: WIDTH - 1.5, rx: 0.8 }));
  node.append(...bars);
  return {
    node,
    update(latency) {
      const recent = (latency?.recent ?? []).slice(-BARS);
      const highest = Math.max(10, ...recent.map((dot) => dot.milliseconds));
      bars.forEach((bar, index) => {
        const dot = recent[index - (BARS - recent.length)];
        const size = dot
          ? Math.max(2, (Math.log10(1 + dot.milliseconds) / Math.log10(1 + highest)) * HEIGHT)
          : 1;
        put(bar, 'x', index * WIDTH);
        put(bar, 'y', (HEIGHT - size).toFixed(1));
        put(bar, 'height', size.toFixed(1));
        put(bar, 'class', dot ? (dot.ok === false ? 'failed' : 'ok') : 'none');
      });
    },
  };
}

// Icons, drawn stroke by stroke on a grid of 16.
import { svg } from '../lib/dom.js';

const line = (d) => ['path', { d }];
const dot = (cx, cy, r = 0.9) => ['circle', { cx, cy, r, class: 'fill' }];
const ring = (cx, cy, r) => ['circle', { cx, cy, r }];
const box = (x, y, width, height, rx = 1.5) => ['rect', { x, y, width, height, rx }];

const SHAPES = new Map([
  [
    'server',
    [
      box(2, 2.5, 12, 4.5),
      box(2, 9, 12, 4.5),
      dot(4.6, 4.75),
      dot(4.6, 11.25),
      line('M8 4.75h3.5M8 11.25h3.5'),
    ],
  ],
  ['calls', [line('M1.5 8.5h2.8l2-5.5 3.4 10 2-4.5h2.8')]],
  ['search', [ring(7, 7, 4.5), line('M10.4 10.4 14 14')]],
  ['inbox', [line('M2 9.5 4 3h8l2 6.5v3.5H2zM2 9.5h3.5l1 1.8h3l1-1.8H14')]],
  [
    'shield',
    [line('M8 1.8 13 3.6v4c0 3.2-2.1 5.4-5 6.6-2.9-1.2-5-3.4-5-6.6v-4z'), line('m5.7 7.8 1.7 1.7 3-3.2')],
  ],
  ['key', [ring(5.2, 10.6, 3), line('m7.4 8.4 5.8-5.8M10.4 5.4l2.2 2.2')]],
  ['gauge', [line('M2.2 12.2a6.3 6.3 0 1 1 11.6 0'), line('m8 9.7 3-3.6'), dot(8, 9.9, 1.2)]],
  [
    'sun',
    [
      ring(8, 8, 2.9),
      line('M8 1.4v1.4M8 13.2v1.4M1.4 8h1.4M13.2 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M3.3 12.7l1-1M11.7 4.3l1-1'),
    ],
  ],
  ['moon', [line('M13.5 9.8A5.8 5.8 0 0 1 6.2 2.5a5.8 5.8 0 1 0 7.3 7.3z')]],
  ['auto', [ring(8, 8, 5.8), ['path', { d: 'M8 2.2a5.8 5.8 0 0 1 0 11.6z', class: 'fill' }]]],
  [
    'help',
    [ring(8, 8, 6.2), line('M6.2 6.3c.1-1 .9-1.6 1.9-1.6s1.8.7 1.8 1.6c0 1.3-1.9 1.4-1.9 2.8'), dot(8, 11.3)],
  ],
  ['leave', [line('M6.5 2.5h-4v11h4M10.2 5 13.5 8l-3.3 3M13.2 8H6')]],
  ['more', [dot(3.2, 8, 1.3), dot(8, 8, 1.3), dot(12.8, 8, 1.3)]],
  ['plus', [line('M8 2.8v10.4M2.8 8h10.4')]],
  ['check', [line('m3 8.6 3.2 3.2L13 4.6')]],
  ['cross', [line('m3.8 3.8 8.4 8.4M12.2 3.8l-8.4 8.4')]],
  ['play', [['path', { d: 'M4.5 2.8v10.4L13 8z', class: 'fill soft' }]]],
  ['stop', [['rect', { x: 3.8, y: 3.8, width: 8.4, height: 8.4, rx: 1.2, class: 'fill' }]]],
  ['pause', [line('M5.4 3.2v9.6M10.6 3.2v9.6')]],
  ['refresh', [line('M13.3 6.2A5.7 5.7 0 1 0 13.6 9M13.5 2.8v3.5H10')]],
  ['plug', [line('M5.5 1.8v3.4M10.5 1.8v3.4M3.6 5.2h8.8v2.3a4.4 4.4 0 0 1-8.8 0zM8 11.9v2.6')]],
  ['copy', [box(5.5, 5.5, 8, 8), line('M10.5 5.4V2.5h-8v8h2.9')]],
  ['open', [line('M9.2 2.5h4.3v4.3M13.2 2.8 7.4 8.6M11.5 9.5v4h-9v-9h4')]],
  ['right', [line('m6 3.2 4.8 4.8L6 12.8')]],
  ['clock', [ring(8, 8, 6.1), line('M8 4.4V8l2.5 1.7')]],
  ['trash', [line('M2.5 4.3h11M6 4.3V2.4h4v1.9M3.9 4.3l.6 9.2h7l.6-9.2M6.6 7v3.8M9.4 7v3.8')]],
  ['warning', [line('M8 2.2 14.6 13.4H1.4z'), line('M8 6.4v3.2'), dot(8, 11.4)]],
  ['wrong', [ring(8, 8, 6.1), line('m5.7 5.7 4.6 4.6M10.3 5.7l-4.6 4.6')]],
  ['ban', [ring(8, 8, 6.1), line('m3.7 3.7 8.6 8.6')]],
  [
    'ready',
    [
      ['circle', { cx: 8, cy: 8, r: 6.3, class: 'fill' }],
      ['path', { d: 'm5 8.2 2.1 2.1L11 6', class: 'cutout' }],
    ],
  ],
  ['spin', [['circle', { cx: 8, cy: 8, r: 5.8, class: 'faint' }], line('M8 2.2A5.8 5.8 0 0 1 13.8 8')]],
  ['hollow', [ring(8, 8, 5.8)]],
  ['dash', [ring(8, 8, 5.8), line('M5.4 8h5.2')]],
  ['terminal', [box(1.8, 2.8, 12.4, 10.4), line('m4.4 6 2.2 2-2.2 2M8.4 10.2h3')]],
  ['file', [line('M3.5 1.8h5.7L12.5 5v9.2h-9zM9 2v3.2h3.3')]],
  ['message', [line('M2 3h12v8H8.2L5 13.7V11H2z')]],
  [
    'tool',
    [
      line(
        'M9.7 6.3 3.4 12.6M13.6 4.4a3.4 3.4 0 0 1-4.7 3.9 3.4 3.4 0 0 1-1.2-4.7A3.4 3.4 0 0 1 11.6 2.4L9.8 4.2l.3 1.7 1.7.3z',
      ),
    ],
  ],
  ['table', [box(2, 2.8, 12, 10.4), line('M2 6.4h12M2 9.8h12M6.4 6.4v6.8')]],
  ['chart', [line('M2.5 2v11.5H14M5.4 11V8M8.4 11V4.6M11.4 11V6.6')]],
]);

/** An icon, which says nothing to assistive technology unless it has a name. */
export function icon(name, { label, class: extra = '' } = {}) {
  const shapes = SHAPES.get(name) ?? SHAPES.get('hollow');
  const attributes = label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' };
  return svg(
    'svg',
    { viewBox: '0 0 16 16', class: `icon icon-${name} ${extra}`.trim(), focusable: 'false', ...attributes },
    ...shapes.map(([tag, shape]) => svg(tag, shape)),
  );
}

// What a tool, a resource or a prompt gave: texts, pictures and files of a server, none of which is trusted.
import { h } from '../lib/dom.js';
import { bytes } from '../lib/format.js';
import { codeBlock, plain, pretty, said } from '../lib/text.js';
import { icon } from './icons.js';
import { addressLink } from './links.js';

const PICTURE_KINDS = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MAX_PICTURE_CHARACTERS = 12_000_000;
const MAX_BLOCKS = 200;
const MAX_REFORMATTED = 300_000;

/** How files of these kinds begin, in base64. A name alone does not make a picture. */
const BEGINNINGS = new Map([
  ['image/png', 'iVBORw0KGgo'],
  ['image/jpeg', '/9j/'],
  ['image/gif', 'R0lGOD'],
  ['image/webp', 'UklGR'],
]);

const sizeOf = (base64) =>
  Math.floor((base64.length * 3) / 4) - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0);

/** The address of a picture, or null if it is none that is shown. */
function pictureOf(data, kind) {
  if (typeof data !== 'string' || !PICTURE_KINDS.has(kind) || data.length > MAX_PICTURE_CHARACTERS)
    return null;
  const isBase64 = data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
  return isBase64 && data.startsWith(BEGINNINGS.get(kind)) ? `data:${kind};base64,${data}` : null;
}

function saveButton(data, name) {
  const save = h('button', { type: 'button', class: 'button small' }, icon('file'), 'Save as a file');
  save.addEventListener('click', () => {
    let raw;
    try {
      raw = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    } catch {
      save.disabled = true;
      save.textContent = 'Not base64, cannot be saved';
      return;
    }
    // Whatever it claims to be, it is saved as bytes and never opened here.
    const address = URL.createObjectURL(new Blob([raw], { type: 'application/octet-stream' }));
    h('a', { href: address, download: name.replace(/[^\w.-]+/g, '_').slice(0, 80) || 'file' }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });
  return save;
}

function binary(block, word) {
  const data = typeof block.data === 'string' ? block.data : typeof block.blob === 'string' ? block.blob : '';
  const address = pictureOf(data, block.mimeType);
  if (address) {
    const picture = h('img', {
      class: 'picture',
      src: address,
      alt: `Picture from the server, ${bytes(sizeOf(data))}`,
    });
    picture.addEventListener('error', () =>
      picture.replaceWith(h('p', { class: 'faint' }, 'The picture cannot be shown: its data is broken.')),
    );
    return h(
      'figure',
      { class: 'block' },
      picture,
      h('figcaption', null, `${block.mimeType}, ${bytes(sizeOf(data))} `, saveButton(data, 'picture')),
    );
  }
  return h(
    'div',
    { class: 'block' },
    h(
      'p',
      null,
      icon('file'),
      ` ${word}, `,
      said(block.mimeType ?? 'unknown kind', { class: 'mono', limit: 80 }),
      `, ${bytes(sizeOf(data))} `,
      saveButton(data, word),
    ),
  );
}

/** A text; JSON in it is indented, since that is how it is read. */
function text(value) {
  const raw = typeof value === 'string' ? value : pretty(value);
  const trimmed = raw.trim();
  if (/^[[{]/.test(trimmed) && trimmed.length < MAX_REFORMATTED) {
    try {
      return codeBlock(pretty(JSON.parse(trimmed)), { 'aria-label': 'JSON text' });
    } catch {
      // It only looks like JSON.
    }
  }
  return codeBlock(raw, { 'aria-label': 'Text' });
}

function resource(contents) {
  const head = h(
    'p',
    { class: 'block-head' },
    icon('file'),
    addressLink(contents?.uri ?? ''),
    contents?.mimeType && h('span', { class: 'faint' }, ' ', said(contents.mimeType, { limit: 80 })),
  );
  if (typeof contents?.text === 'string') return h('div', { class: 'block' }, head, text(contents.text));
  if (typeof contents?.blob === 'string') return h('div', { class: 'block' }, head, binary(contents, 'File'));
  return h('div', { class: 'block' }, head, codeBlock(contents, { 'aria-label': 'Resource' }));
}

/** One block of content. */
function block(content) {
  if (content?.type === 'text') return h('div', { class: 'block' }, text(content.text));
  if (content?.type === 'image') return binary(content, 'Picture');
  if (content?.type === 'audio') return binary(content, 'Sound');
  if (content?.type === 'resource') return resource(content.resource);
  if (content?.type === 'resource_link') {
    return h(
      'div',
      { class: 'block' },
      h(
        'p',
        null,
        icon('open'),
        ' ',
        said(content.title ?? content.name ?? 'Resource', { class: 'strong', limit: 200 }),
        ' ',
        addressLink(content.uri),
      ),
      content.description && said(content.description, { tag: 'p', class: 'faint', limit: 600 }),
    );
  }
  return h(
    'div',
    { class: 'block' },
    codeBlock(content, { 'aria-label': `Content of type ${plain(content?.type, 40)}` }),
  );
}

/** All that a result of a tool holds. */
export function toolResult(result) {
  const blocks = Array.isArray(result?.content) ? result.content : [];
  const shown = blocks.slice(0, MAX_BLOCKS).map(block);
  if (blocks.length > MAX_BLOCKS)
    shown.push(h('p', { class: 'faint' }, `${blocks.length - MAX_BLOCKS} more blocks are not shown.`));
  const structured = result?.structuredContent;
  // A server that gives structured content repeats it as text; then once is enough.
  const isRepeated = structured !== undefined && blocks.length === 1 && isSame(blocks[0]?.text, structured);
  return h(
    'div',
    { class: 'result' },
    shown.length === 0 && structured === undefined && h('p', { class: 'faint' }, 'The result is empty.'),
    shown,
    structured !== undefined &&
      !isRepeated &&
      h(
        'div',
        { class: 'block' },
        h('h4', null, 'Structured content'),
        codeBlock(structured, { 'aria-label': 'Structured content' }),
      ),
    h(
      'details',
      { class: 'quiet-details' },
      h('summary', null, 'Whole result as JSON'),
      codeBlock(result, { 'aria-label': 'Result as JSON' }),
    ),
  );
}

function isSame(written, structured) {
  try {
    return (
      typeof written === 'string' &&
      written.length < MAX_REFORMATTED &&
      JSON.stringify(JSON.parse(written)) === JSON.stringify(structured)
    );
  } catch {
    return false;
  }
}

/** What reading a resource gave. */
export const resourceResult = (result) =>
  h(
    'div',
    { class: 'result' },
    (Array.isArray(result?.contents) ? result.contents : []).slice(0, MAX_BLOCKS).map(resource),
  );

/** The messages of a prompt. */
export function promptResult(result) {
  const messages = Array.isArray(result?.messages) ? result.messages.slice(0, MAX_BLOCKS) : [];
  return h(
    'ol',
    { class: 'messages-list' },
    messages.map((message) =>
      h(
        'li',
        { class: 'block' },
        h('p', { class: 'strong' }, plain(message?.role, 40)),
        [message?.content].flat().map(block),
      ),
    ),
  );
}

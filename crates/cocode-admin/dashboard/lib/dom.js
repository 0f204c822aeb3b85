// Elements, made without ever reading text as markup.

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

/** Attributes that carry code or markup. Nothing here needs them, so they are refused whoever asks. */
const FORBIDDEN = /^(on|style$|srcdoc$|formaction$|xlink:)/i;

/** Where links may lead: into this page, to a web page, or to a file that was made here. */
const LINKS = /^(#|https?:\/\/|blob:)/;

/** What images may be: those of this page, and pictures of a tool whose kind and letters were checked. */
const PICTURES = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;

/** What is set as a property, since the attribute is only where it starts. */
const PROPERTIES = new Set(['value', 'checked']);

function setAttribute(element, name, value) {
  if (FORBIDDEN.test(name)) throw new Error(`the attribute ${name} is not for this page`);
  if (name === 'href' && !LINKS.test(value)) throw new Error('a link must lead to http or https');
  if (name === 'src' && !PICTURES.test(value)) throw new Error('an image must be a picture of a known kind');
  element.setAttribute(name, value === true ? '' : String(value));
}

function apply(element, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else {
      setAttribute(element, name, value);
    }
  }
}

/** Adds children: nodes as they are, everything else as text; nothing for null, undefined and false. */
function append(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

/** An HTML element: `h('p', { class: 'note', on: { click } }, 'text', node)`. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  // Children first: what a <select> has chosen is only there once its options are.
  append(element, ...children);
  apply(element, attributes);
  return element;
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG_NAMESPACE, tag);
  apply(element, attributes);
  return append(element, ...children);
}

/** Puts other children in the place of those that are there. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  return append(parent, ...children);
}

/** Sets an attribute, or takes it away; leaves the page alone if nothing changes. */
export function put(element, name, value) {
  const wanted =
    value === null || value === undefined || value === false ? null : value === true ? '' : String(value);
  if (element.getAttribute(name) === wanted) return;
  if (wanted === null) element.removeAttribute(name);
  else setAttribute(element, name, wanted);
}

/** Sets text, unless it is there already. */
export function write(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

const rowsOf = new WeakMap();

/**
 * Makes the children of an element those of a list, and keeps the ones that stay, with their focus.
 * `make(item)` gives `{ node, update(item) }`.
 */
export function sync(parent, items, keyOf, make) {
  const rows = rowsOf.get(parent) ?? new Map();
  rowsOf.set(parent, rows);
  const wanted = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!wanted.has(key)) wanted.set(key, item);
  }
  for (const [key, row] of rows) {
    if (wanted.has(key)) continue;
    row.node.remove();
    rows.delete(key);
  }
  let cursor = parent.firstChild;
  for (const [key, item] of wanted) {
    let row = rows.get(key);
    if (row) {
      row.update?.(item);
    } else {
      row = make(item);
      rows.set(key, row);
    }
    if (cursor === row.node) cursor = cursor.nextSibling;
    else parent.insertBefore(row.node, cursor);
  }
}

let counter = 0;

/** An id that no other element of this page has. */
export function uniqueId(prefix = 'id') {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** A button with a name, and if wanted an icon before it. */
export function button(label, { icon: picture, kind = '', ...attributes } = {}, ...more) {
  return h(
    'button',
    { type: 'button', class: `button ${kind}`.trim(), ...attributes },
    picture,
    h('span', null, label),
    ...more,
  );
}

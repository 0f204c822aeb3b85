// Where in the page somebody is: what stands after the `#`, and the view that belongs to it.
import { replace } from './dom.js';

/** `#/servers/files/tools?q=x` → { segments: ['servers', 'files', 'tools'], query } */
export function readHash(hash) {
  const [address, query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const segments = address
    .split('/')
    .filter(Boolean)
    .map((segment) => {
      try {
        return decodeURIComponent(segment);
      } catch {
        return segment;
      }
    });
  return { segments, query: new URLSearchParams(query) };
}

/** A name as part of an address. Halves of characters, which some servers send, have no place in one. */
const encoded = (name) => encodeURIComponent(String(name).toWellFormed());

/** The address of a place: `placeOf(['servers', name], { q })`. */
export function placeOf(segments, query) {
  const words = query ? new URLSearchParams(query).toString() : '';
  return `#/${segments.map(encoded).join('/')}${words ? `?${words}` : ''}`;
}

/** Goes to a place. */
export function go(segments, query) {
  location.hash = placeOf(segments, query);
}

export class Router {
  #outlet;
  #views;
  #onChange;
  #current = null;

  /** `views`: a map from the first segment to `{ title, mount(outlet, place, signal) }`; '' is the first of all. */
  constructor(outlet, views, onChange) {
    this.#outlet = outlet;
    this.#views = views;
    this.#onChange = onChange;
    addEventListener('hashchange', () => this.show({ moved: true }));
  }

  /** Shows the view of the address. After a move the heading gets the focus, so that it is read out. */
  show({ moved = false } = {}) {
    const place = readHash(location.hash);
    const name = this.#views.has(place.segments[0]) ? place.segments[0] : '';
    const view = this.#views.get(name);
    const key = view.key?.(place) ?? name;
    if (this.#current?.key === key && this.#current.follow) {
      this.#current.follow(place);
      this.#onChange(view, place);
      return;
    }
    this.clear();
    const ended = new AbortController();
    this.#current = { key, ended };
    // The old view goes as one, and the new one comes as one.
    this.#current.follow = view.mount(this.#outlet, place, ended.signal);
    this.#onChange(view, place);
    if (!moved) return;
    scrollTo(0, 0);
    this.#outlet.querySelector('h1')?.focus({ preventScroll: true });
  }

  /** Ends what is shown. */
  clear() {
    this.#current?.ended.abort();
    this.#current = null;
    replace(this.#outlet);
  }
}

// A list that a server offers: asked for when the server is ready, and anew when it is ready again.
import { replace } from '../lib/dom.js';
import { get, path } from '../lib/api.js';
import { state, watch } from '../lib/store.js';
import { empty, loading, problemBox } from './notes.js';

/** `show(answer)` gives what the answer looks like, or null if there is nothing in it. */
export function showOffers(panel, { name, signal }, { kind, picture, nothing, show }) {
  let shown = null;
  const load = async () => {
    replace(panel, loading());
    try {
      const answer = await get(path('servers', name, kind), { signal });
      replace(panel, show(answer) ?? empty(picture, nothing, 'The server offers none.'));
    } catch (problem) {
      if (!signal.aborted) replace(panel, problemBox(problem));
    }
  };
  const update = () => {
    // A server that is not ready has nobody who could answer.
    const isReady = state.servers.get(name)?.state === 'ready';
    if (isReady === shown) return;
    shown = isReady;
    if (isReady) load();
    else replace(panel, empty(picture, nothing, 'They are known once the server is ready.'));
  };
  watch(['servers'], update, signal);
  update();
}

// Requests that may take long take turns, all tabs of a browser together. Browsers have six connections to a gateway at
// most; calls that wait for an answer in the inbox must not hold the very ones that the answer needs.

/** How many of each kind are under way at a time. With the stream of events, two connections are left for the rest. */
const PLACES = new Map([
  // What a server does for somebody, which may wait for an answer in the inbox.
  ['call', 2],
  // Starting and stopping servers, which must not have to wait for those.
  ['switch', 1],
]);

/** Holds a lock until what this gives is called; gives null where the lock is wanted at once and is not free. */
function held(name, options) {
  return new Promise((resolve, reject) => {
    const hold = (lock) => {
      if (lock !== null) return new Promise((leave) => resolve(leave));
      resolve(null);
      return null;
    };
    navigator.locks.request(name, options, hold).catch(reject);
  });
}

async function turnAmongTabs(kind, signal, onWait) {
  const names = Array.from({ length: PLACES.get(kind) }, (_, at) => `cocode.turn.${kind}.${at}`);
  for (const name of names) {
    const leave = await held(name, { ifAvailable: true });
    if (leave) return leave;
  }
  onWait();
  const enough = new AbortController();
  const either = signal ? AbortSignal.any([signal, enough.signal]) : enough.signal;
  const tries = names.map((name) => held(name, { signal: either }));
  try {
    const first = await Promise.any(tries);
    // Two may have become free in the same moment.
    for (const one of tries) one.then((leave) => leave !== first && leave(), () => {});
    return first;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    enough.abort();
  }
}

const taken = new Map();
const queues = new Map();

/** The same where there are no locks: within this page. */
async function turnInPage(kind, signal, onWait) {
  const queue = queues.get(kind) ?? [];
  queues.set(kind, queue);
  const leave = () => {
    const next = queue.shift();
    if (next) next();
    else taken.set(kind, taken.get(kind) - 1);
  };
  if ((taken.get(kind) ?? 0) < PLACES.get(kind)) {
    taken.set(kind, (taken.get(kind) ?? 0) + 1);
    return leave;
  }
  onWait();
  await new Promise((resolve, reject) => {
    const go = () => {
      signal?.removeEventListener('abort', giveUp);
      resolve();
    };
    const giveUp = () => {
      queue.splice(queue.indexOf(go), 1);
      reject(signal.reason);
    };
    queue.push(go);
    signal?.addEventListener('abort', giveUp, { once: true });
  });
  return leave;
}

/** Waits for a turn, until `signal` ends that; gives what ends the turn. `onWait` hears if there is none at once. */
export async function turn(kind, { signal, onWait = () => {} } = {}) {
  signal?.throwIfAborted();
  const leave = await (navigator.locks ? turnAmongTabs : turnInPage)(kind, signal, onWait);
  if (!signal?.aborted) return leave;
  leave();
  throw signal.reason;
}

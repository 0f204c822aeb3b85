// What is known of the gateway at this moment, and who wants to hear when it changes.

/** Changes are told together, at most this often. */
const BATCH_MS = 40;

/** The most calls, and recent calls of one server, that are kept. */
export const MAX_CALLS = 500;
export const MAX_RECENT = 240;

/** Everything is in maps: names come from servers, and some names mean something to plain objects. */
export const state = {
  session: null,
  status: null,
  servers: new Map(),
  /** By id, oldest first. */
  calls: new Map(),
  /** By server: `{ name, count, errors, p50, p95, p99, recent }`. */
  latencies: new Map(),
  elicitations: [],
  /** Entries that wait for approval, and those that were rejected. */
  trust: [],
  rejected: [],
  feed: { state: 'connecting', attempt: 0 },
  /** Which lists have arrived at least once. */
  loaded: new Set(),
};

const listeners = new Map();
let dirty = new Set();
let timer = null;

function flush() {
  timer = null;
  const topics = dirty;
  dirty = new Set();
  const told = new Set();
  for (const topic of topics) {
    for (const listener of listeners.get(topic) ?? []) {
      if (told.has(listener)) continue;
      told.add(listener);
      listener(topics);
    }
  }
}

/** Says that something about a topic is different now. */
export function touch(...topics) {
  for (const topic of topics) dirty.add(topic);
  timer ??= setTimeout(flush, BATCH_MS);
}

/** Calls `listener` after changes of these topics, until `signal` ends it. */
export function watch(topics, listener, signal) {
  for (const topic of topics) {
    if (!listeners.has(topic)) listeners.set(topic, new Set());
    listeners.get(topic).add(listener);
    signal?.addEventListener('abort', () => listeners.get(topic).delete(listener), { once: true });
  }
}

/** Forgets everything that belongs to a session. */
export function forget() {
  state.session = null;
  state.status = null;
  state.servers.clear();
  state.calls.clear();
  state.latencies.clear();
  state.elicitations = [];
  state.trust = [];
  state.rejected = [];
  state.loaded.clear();
  touch('session', 'status', 'servers', 'calls', 'latencies', 'elicitations', 'trust');
}

/** How many calls of a server are under way, or of all. */
export function runningCalls(server = null) {
  let running = 0;
  for (const call of state.calls.values())
    if (call.state === 'running' && (server === null || call.server === server)) running += 1;
  return running;
}

/** Servers by name, as people sort. */
export function serversByName() {
  return [...state.servers.values()].sort((one, other) =>
    one.name.localeCompare(other.name, 'en', { numeric: true }),
  );
}

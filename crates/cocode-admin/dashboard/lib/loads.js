// Brings what the API knows into the store: lists when they are needed, events as they come.
import { get, path } from './api.js';
import { moment } from './format.js';
import { MAX_CALLS, MAX_RECENT, state, touch } from './store.js';

/** Lists that an event says have changed are asked for once things are calm for this long. */
const SETTLE_MS = 150;

/** Percentiles are asked for anew this long after calls have ended. */
const LATENCIES_MS = 1_500;

/** Grows with every event, so that an older list does not undo a newer event. */
let turn = 0;
const turnOfServer = new Map();

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value) => (Array.isArray(value) ? value.filter(isObject) : []);

function forgetServer(name) {
  state.servers.delete(name);
  if (state.latencies.delete(name)) touch('latencies');
}

function takeServer(server) {
  if (!isObject(server) || typeof server.name !== 'string') return;
  turn += 1;
  turnOfServer.set(server.name, turn);
  if (server.removed === true || server.state === 'removed') forgetServer(server.name);
  else state.servers.set(server.name, { ...server, heardAt: Date.now() });
  touch('servers');
}

/** Takes a server that an action has answered with, without waiting for its event. */
export function learnServer(server) {
  takeServer(server);
}

/** A server that this page has removed. */
export function dropServer(name) {
  forgetServer(name);
  touch('servers');
}

export async function loadServers() {
  const asked = turn;
  const { servers } = await get('servers');
  const found = new Map(
    listOf(servers)
      .filter(({ name }) => typeof name === 'string')
      .map((server) => [server.name, server]),
  );
  for (const name of [...state.servers.keys()]) {
    if (!found.has(name) && (turnOfServer.get(name) ?? 0) <= asked) state.servers.delete(name);
  }
  for (const [name, server] of found) {
    if ((turnOfServer.get(name) ?? 0) <= asked) state.servers.set(name, { ...server, heardAt: Date.now() });
  }
  state.loaded.add('servers');
  touch('servers');
}

export async function loadServer(name) {
  takeServer(await get(path('servers', name)));
}

const isOver = (call) => call.state !== 'running';

function keepCall(call) {
  const found = state.calls.get(call.id);
  // A gateway that was started anew counts from the beginning.
  const known = found?.at === call.at ? found : undefined;
  if (known && isOver(known) && !isOver(call)) return null;
  // A call keeps its place, which is that of its beginning.
  state.calls.set(call.id, { ...known, ...call });
  while (state.calls.size > MAX_CALLS) state.calls.delete(state.calls.keys().next().value);
  return known ?? null;
}

async function loadCalls() {
  const asked = new Set([...state.calls.values()].filter((call) => !isOver(call)).map(({ id }) => id));
  const { calls } = await get('calls', { query: { limit: String(MAX_CALLS) } });
  // Newest first, as the API has it; the map wants the oldest first.
  for (const call of listOf(calls).reverse()) {
    if (call.id === undefined) continue;
    keepCall(call);
    asked.delete(call.id);
  }
  // The gateway knows nothing of them any more: they have ended while nobody told.
  for (const id of asked) state.calls.delete(id);
  state.calls = new Map(
    [...state.calls].sort(([, one], [, other]) => (moment(one.at) ?? 0) - (moment(other.at) ?? 0)),
  );
  state.loaded.add('calls');
  touch('calls');
}

async function loadLatencies() {
  const { servers } = await get('latencies');
  const found = listOf(servers).filter(({ name }) => typeof name === 'string');
  state.latencies = new Map(
    found.map((latency) => [
      latency.name,
      { ...latency, recent: listOf(latency.recent).slice(-MAX_RECENT) },
    ]),
  );
  state.loaded.add('latencies');
  touch('latencies');
}

/** Calls whose time says something about the server: it was asked, and its answer waited for. */
const TIMED = new Set(['ok', 'tool-error', 'error']);

/** Shows a call that has just ended on its plot at once; the percentiles follow. */
function noteLatency(call) {
  if (!isOver(call) || typeof call.server !== 'string' || call.server === '') return;
  soon('latencies', loadLatencies, LATENCIES_MS);
  if (!TIMED.has(call.state) || typeof call.milliseconds !== 'number') return;
  const latency = state.latencies.get(call.server) ?? { name: call.server, count: 0, errors: 0, recent: [] };
  const ok = call.state === 'ok';
  const at = (moment(call.at) ?? Date.now()) + call.milliseconds;
  const recent = [...latency.recent, { at, milliseconds: call.milliseconds, ok }].slice(-MAX_RECENT);
  const sorted = recent.map((dot) => dot.milliseconds).sort((one, other) => one - other);
  const rank = (share) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
  state.latencies.set(call.server, {
    ...latency,
    recent,
    count: (latency.count ?? 0) + 1,
    errors: (latency.errors ?? 0) + (ok ? 0 : 1),
    p50: rank(0.5),
    p95: rank(0.95),
  });
  touch('latencies');
}

function takeCall(call) {
  if (!isObject(call) || call.id === undefined) return;
  const before = keepCall(call);
  if (isOver(call) && !(before && isOver(before))) noteLatency(call);
  touch('calls');
}

export async function loadElicitations() {
  const { elicitations } = await get('elicitations');
  state.elicitations = listOf(elicitations);
  state.loaded.add('elicitations');
  touch('elicitations');
}

export async function loadTrust() {
  const { pending, rejected } = await get('trust');
  state.trust = listOf(pending);
  state.rejected = listOf(rejected);
  state.loaded.add('trust');
  touch('trust');
}

async function loadStatus() {
  const status = await get('status');
  state.status = isObject(status) ? status : null;
  touch('status');
}

const reloadListeners = new Set();

/** Hears that events were lost, or may have been: what a view has asked for by itself has to be asked for anew. */
export function onReload(listener, signal) {
  reloadListeners.add(listener);
  signal.addEventListener('abort', () => reloadListeners.delete(listener), { once: true });
}

/** Everything again, after events were lost. */
export async function reloadAll() {
  for (const listener of reloadListeners) listener();
  touch('tokens');
  await loadAll();
}

/** Everything that the frame of the page and most views need. What fails is told once, and the rest is there. */
export async function loadAll() {
  const loads = [loadServers, loadStatus, loadElicitations, loadTrust, loadCalls, loadLatencies];
  const outcomes = await Promise.allSettled(loads.map((load) => load()));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

const waiting = new Map();

let onProblem = () => {};

/** Says who hears that something could not be brought up to date. */
export function onLoadProblem(listener) {
  onProblem = listener;
}

/** Asks again for what changes by itself, as how many sessions there are. */
export function refreshStatus() {
  soon('status', loadStatus);
}

/** Does something once things are calm. */
function soon(name, load, pause = SETTLE_MS) {
  if (pause !== SETTLE_MS && waiting.has(name)) return;
  clearTimeout(waiting.get(name));
  const timer = setTimeout(() => {
    waiting.delete(name);
    load().catch((problem) => onProblem(problem));
  }, pause);
  waiting.set(name, timer);
}

const logListeners = new Set();

/** Hears every line that a server logs: `{ server, at, stream, level, text }`. */
export function onLog(listener, signal) {
  logListeners.add(listener);
  signal.addEventListener('abort', () => logListeners.delete(listener), { once: true });
}

/** Takes an event of the stream. */
export function takeEvent({ event, data }) {
  if (event === 'server') takeServer(data);
  if (event === 'call') takeCall(data);
  if (event === 'elicitation') soon('elicitations', loadElicitations);
  if (event === 'trust') soon('trust', loadTrust);
  if (event === 'token') touch('tokens');
  // Some events were lost on the way: what is known has to be read anew.
  if (event === 'missed') soon('all', reloadAll);
  if (event === 'log' && isObject(data)) for (const listener of logListeners) listener(data);
  if (event === 'config') {
    soon('servers', loadServers);
    soon('trust', loadTrust);
    // It says what is wrong in the files, also what was wrong before.
    soon('status', loadStatus);
  }
}

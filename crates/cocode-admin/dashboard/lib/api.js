// Requests to the management API: one way out, with the CSRF value, a deadline, and errors that say what to do.
import { eventsOf } from './sse.js';
import { turn } from './turns.js';

const ROOT = new URL('api/v1/', document.baseURI);

/** How long a plain answer is waited for. */
const DEADLINE_MS = 30_000;

/** How long an answer is waited for that a server has to give, or to be started for. The gateway gives up before. */
const SERVER_DEADLINE_MS = 120_000;

/** The gateway says something every 15 seconds. After this long a silence a stream is taken for dead. */
export const SILENCE_MS = 40_000;

/** What went wrong with a request, in words for people. */
class Problem extends Error {
  constructor(message, { status = 0, code = 'unknown', hints = [] } = {}) {
    super(message);
    this.name = 'Problem';
    this.status = status;
    this.code = code;
    this.hints = hints;
  }
}

let csrf = null;
let whenSignedOut = () => {};

/** Remembers the value that every changing request carries. */
export function useCsrf(value) {
  csrf = value;
}

/** Says who is told when the session is over. */
export function onSignedOut(listener) {
  whenSignedOut = listener;
}

/** A part of a path. Dots alone would be taken for directions by every reader of addresses. */
function segment(value) {
  const text = String(value);
  if (text === '' || text === '.' || text === '..')
    throw new Problem(`“${text}” is no name that can be asked for.`, { code: 'bad-name' });
  return encodeURIComponent(text.toWellFormed());
}

/** The path of names: `path('servers', name, 'tools')`. */
export const path = (...segments) => segments.map(segment).join('/');

function problemOf(status, body) {
  const error = body?.error;
  const hints = Array.isArray(error?.hints) ? error.hints.filter((hint) => typeof hint === 'string') : [];
  const message =
    typeof error?.message === 'string' ? error.message : `The gateway answered with status ${status}.`;
  return new Problem(message, {
    status,
    code: typeof error?.code === 'string' ? error.code : `http-${status}`,
    hints,
  });
}

/** The problem that an `error` event or an answer describes. */
export function problemFrom(body, status = 0) {
  return body?.error ? problemOf(status, body) : problemOf(status, { error: body });
}

async function bodyOf(response) {
  if (response.status === 204) return null;
  const text = await response.text();
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

async function exchange(method, where, { body, accept = 'application/json', signal, headers = {} } = {}) {
  const changes = method !== 'GET';
  try {
    return await fetch(new URL(where, ROOT), {
      method,
      signal,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      headers: {
        Accept: accept,
        ...(changes && { 'Content-Type': 'application/json' }),
        ...(changes && csrf && { 'X-Cocode-CSRF': csrf }),
        ...headers,
      },
      ...(changes && body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== 'TimeoutError') throw error;
    const late = signal?.aborted;
    throw new Problem(late ? 'The gateway did not answer in time.' : 'The gateway cannot be reached.', {
      code: late ? 'timeout' : 'unreachable',
      hints: late ? ['It may be busy: try again.'] : ['Is `cocode gateway` still running?'],
    });
  }
}

async function checked(response, { quiet = false } = {}) {
  if (response.ok) return response;
  const problem = problemOf(response.status, await bodyOf(response));
  if (response.status === 401 && !quiet) whenSignedOut(problem);
  throw problem;
}

function bounded(signal, deadline) {
  const timeout = AbortSignal.timeout(deadline);
  return signal ? AbortSignal.any([signal, timeout]) : timeout;
}

/** Asks for something. `query` holds what stands after the question mark. */
export async function get(where, { signal, query, quiet } = {}) {
  const address = query ? `${where}?${new URLSearchParams(query)}` : where;
  const response = await exchange('GET', address, { signal: bounded(signal, DEADLINE_MS) });
  return bodyOf(await checked(response, { quiet }));
}

/** Asks a server for something, or has it started: that may take long, and waits for its turn among those of its kind. */
export async function sendLong(kind, where, body, { onWait, ...options } = {}) {
  const leave = await turn(kind, { signal: options.signal, onWait });
  try {
    return await send(where, body, { deadline: SERVER_DEADLINE_MS, ...options });
  } finally {
    leave();
  }
}

/** Changes something: POST unless told. A CSRF value that is out of date is fetched anew, once. */
export async function send(where, body, { method = 'POST', signal, deadline = DEADLINE_MS, quiet } = {}) {
  const once = () => exchange(method, where, { body, signal: bounded(signal, deadline) });
  let response = await once();
  if (response.status === 403 && !quiet) {
    const problem = problemOf(403, await bodyOf(response.clone()));
    if (problem.code.includes('csrf')) {
      useCsrf((await get('session')).csrf);
      response = await once();
    }
  }
  return bodyOf(await checked(response, { quiet }));
}

/** Takes something away. */
export const remove = (where, options) => send(where, undefined, { ...options, method: 'DELETE' });

/** Ends a stream on which nothing was heard for too long: `{ signal, heard(), end() }`. */
export function silenceGuard() {
  const controller = new AbortController();
  let timer = null;
  const end = () => clearTimeout(timer);
  const heard = () => {
    end();
    timer = setTimeout(() => controller.abort(), SILENCE_MS);
  };
  heard();
  return { signal: controller.signal, heard, end };
}

/**
 * Calls a tool, which answers with events. Gives the events, or the one answer as an event `result`. `onWait` hears if it
 * has to wait for its turn, `onTurn` when that has come.
 */
export async function* sendForEvents(where, body, { signal, onWait, onTurn } = {}) {
  const leave = await turn('call', { signal, onWait });
  onTurn?.();
  try {
    yield* eventsOfCall(where, body, signal);
  } finally {
    leave();
  }
}

async function* eventsOfCall(where, body, signal) {
  const silence = silenceGuard();
  const either = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
  try {
    const response = await checked(
      await exchange('POST', where, { body, signal: either, accept: 'text/event-stream' }),
    );
    if ((response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      yield* eventsOf(response, silence.heard);
    } else {
      yield { event: 'result', data: await bodyOf(response) };
    }
  } catch (error) {
    if (!silence.signal.aborted || signal?.aborted) throw error;
    throw new Problem('The gateway has gone silent, so nobody knows what became of this.', {
      code: 'silent',
      hints: ['Look at Calls whether it has ended, before you do it again.'],
    });
  } finally {
    silence.end();
  }
}

/** Opens the stream of everything that happens, from after the event with this id. */
export async function openEvents({ lastId, signal }) {
  const headers = lastId ? { 'Last-Event-ID': lastId } : {};
  return checked(await exchange('GET', 'events', { signal, accept: 'text/event-stream', headers }));
}

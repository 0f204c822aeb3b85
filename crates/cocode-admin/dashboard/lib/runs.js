// Calls that were made from this page. They go on when another view is looked at, and are found again.
import { path, problemFrom, sendForEvents } from './api.js';

/** The most lines of a log, and calls, that are kept. */
const MAX_LOGS = 500;
const MAX_RUNS = 50;

const runs = new Map();
const drafts = new Map();
const keyOf = (server, tool) => `${server}\n${tool}`;

function keepBounded(map, key, value) {
  map.delete(key);
  map.set(key, value);
  while (map.size > MAX_RUNS) map.delete(map.keys().next().value);
}

/** One call: `state` is waiting, as long as others have to end first, running, ok, tool-error, error or cancelled. */
class Run extends EventTarget {
  constructor(server, tool) {
    super();
    this.server = server;
    this.tool = tool;
    this.state = 'running';
    this.startedAt = Date.now();
    this.progress = null;
    /** The last lines of its log, and how many there were in all. */
    this.logs = [];
    this.logCount = 0;
    this.result = null;
    this.problem = null;
    this.milliseconds = null;
    this.controller = new AbortController();
  }

  /** Whether nothing more will come of it. */
  get isOver() {
    return this.state !== 'waiting' && this.state !== 'running';
  }

  cancel() {
    this.controller.abort();
  }

  /** It waits for its turn, or that has come. */
  become(state) {
    this.state = state;
    this.startedAt = Date.now();
    this.tell();
  }

  tell() {
    this.dispatchEvent(new Event('change'));
  }

  take({ event, data }) {
    if (event === 'progress') this.progress = data;
    if (event === 'log') {
      this.logs.push(data);
      if (this.logs.length > MAX_LOGS) this.logs.shift();
      this.logCount += 1;
    }
    if (event === 'result') {
      this.result = data?.result ?? null;
      this.milliseconds = data?.milliseconds ?? Date.now() - this.startedAt;
      this.state = this.result?.isError === true ? 'tool-error' : 'ok';
    }
    if (event === 'error') {
      this.problem = problemFrom(data);
      this.state = 'error';
    }
    this.tell();
  }

  async go(body) {
    try {
      const events = sendForEvents(path('servers', this.server, 'call'), body, {
        signal: this.controller.signal,
        onWait: () => this.become('waiting'),
        onTurn: () => this.become('running'),
      });
      for await (const event of events) this.take(event);
      if (!this.isOver)
        throw problemFrom({ message: 'The connection ended before the answer came.', code: 'lost' });
    } catch (error) {
      this.state = this.controller.signal.aborted ? 'cancelled' : 'error';
      this.problem = this.state === 'error' ? error : null;
    }
    this.milliseconds ??= Date.now() - this.startedAt;
    this.tell();
  }
}

/** Calls a tool. */
export function startRun(server, tool, args, timeoutSeconds) {
  const run = new Run(server, tool);
  keepBounded(runs, keyOf(server, tool), run);
  run.go({ tool, arguments: args, ...(timeoutSeconds && { timeoutSeconds }) });
  return run;
}

/** The last call of a tool, if there is one. */
export const runOf = (server, tool) => runs.get(keyOf(server, tool)) ?? null;

/** What was filled in last for a tool. */
export const draftOf = (server, tool) => drafts.get(keyOf(server, tool));

export function keepDraft(server, tool, args) {
  keepBounded(drafts, keyOf(server, tool), args);
}

/** Ends and forgets everything, when somebody signs out. */
export function forgetRuns() {
  for (const run of runs.values()) run.cancel();
  runs.clear();
  drafts.clear();
}

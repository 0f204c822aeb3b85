// A stream of everything that happens: opened, watched, and opened again after a loss, from where it broke.
import { openEvents, silenceGuard } from './api.js';
import { eventsOf } from './sse.js';

/** A stream that ends by itself after so long has done what it was for. */
const LONG_LIFE_MS = 10_000;

/** Pauses before the next attempt: they double, and differ a little between pages. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export class Stream {
  #onEvent;
  #onState;
  #onHeard;
  #lastId;
  #ended = new AbortController();
  #hurry = () => {};

  /**
   * `onState({ state: 'live' | 'connecting' | 'lost', attempt, retryAt?, said? })` hears how the connection is, `onHeard`
   * that something came, if only a comment. `lastId` is that of the last event that is known already.
   */
  constructor({ onEvent, onState, onHeard = () => {}, lastId = null }) {
    this.#onEvent = onEvent;
    this.#onState = onState;
    this.#onHeard = onHeard;
    this.#lastId = lastId;
  }

  start() {
    this.#run();
    return this;
  }

  stop() {
    this.#ended.abort();
    this.#hurry();
  }

  /** Does not wait any longer before the next attempt. */
  retry() {
    this.#hurry();
  }

  async #run() {
    let attempt = 0;
    while (!this.#ended.signal.aborted) {
      this.#onState({ state: 'connecting', attempt });
      let said = null;
      try {
        const lived = await this.#listen(() => {
          attempt = 0;
        });
        // The gateway ends every stream after a while, which is no loss.
        if (lived > LONG_LIFE_MS) continue;
      } catch (problem) {
        if (problem?.status === 401) return;
        said = problem?.status > 0 ? problem.message : null;
      }
      if (this.#ended.signal.aborted) return;
      attempt += 1;
      const pause =
        Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)) * (0.8 + Math.random() * 0.4);
      this.#onState({ state: 'lost', attempt, retryAt: Date.now() + pause, said });
      await this.#wait(pause);
    }
  }

  /** Listens until the stream ends, and says for how many milliseconds it did. */
  async #listen(onLive) {
    const silence = silenceGuard();
    try {
      const signal = AbortSignal.any([this.#ended.signal, silence.signal]);
      const response = await openEvents({ lastId: this.#lastId, signal });
      const began = Date.now();
      onLive();
      this.#onState({ state: 'live', attempt: 0 });
      const heard = () => {
        silence.heard();
        this.#onHeard();
      };
      for await (const event of eventsOf(response, heard)) {
        if (event.id !== null) this.#lastId = event.id;
        this.#onEvent(event);
      }
      return Date.now() - began;
    } finally {
      silence.end();
    }
  }

  #wait(pause) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      this.#hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

// One stream of events for all tabs of a browser: one tab listens and passes on what it hears, and when it goes another
// takes its place. Browsers have six connections to a gateway at most, so a stream for each tab would soon leave none.
import { SILENCE_MS } from './api.js';
import { Stream } from './stream.js';

/** Of the lock that the listening tab holds, and of the channel by which it passes events on. */
const NAME = 'cocode.feed';

/** How often, at most, the listening tab says that its stream is alive. */
const BEAT_MS = 5_000;

/** A listening tab that says nothing for so long was put to sleep by the browser, with the lock in its hand. */
const ASLEEP_MS = 2 * SILENCE_MS;
const LOOK_MS = SILENCE_MS / 2;

/** Pages that came by plain http from another machine have no locks; each of them listens for itself. */
const canShare = () => Boolean(navigator.locks) && typeof BroadcastChannel === 'function';

export class Feed {
  #onEvent;
  #onState;
  #state = { state: 'connecting', attempt: 0 };
  #lastId = null;
  #heardAt = Date.now();
  #beatAt = 0;
  #ended = new AbortController();
  #channel = null;
  /** Where this tab listens, if it is the one that does. */
  #stream = null;
  /** Takes back the wish to be the one. */
  #waiting = null;

  /** `onState({ state: 'live' | 'connecting' | 'lost', attempt, retryAt?, said? })` hears how the connection is. */
  constructor({ onEvent, onState }) {
    this.#onEvent = onEvent;
    this.#onState = onState;
  }

  start() {
    const { signal } = this.#ended;
    addEventListener('online', () => this.retry(), { signal });
    const onVisible = () => {
      if (document.hidden) return;
      this.retry();
      this.#look();
    };
    document.addEventListener('visibilitychange', onVisible, { signal });
    if (!canShare()) {
      this.#listen();
      return this;
    }
    this.#channel = new BroadcastChannel(NAME);
    this.#channel.addEventListener('message', ({ data }) => this.#hear(data));
    this.#channel.postMessage({ kind: 'who' });
    const timer = setInterval(() => this.#look(), LOOK_MS);
    signal.addEventListener('abort', () => clearInterval(timer));
    this.#queue();
    return this;
  }

  stop() {
    this.#ended.abort();
    this.#waiting?.abort();
    this.#stream?.stop();
    this.#channel?.close();
  }

  /** Does not wait any longer before the next attempt, whichever tab makes it. */
  retry() {
    if (this.#stream) this.#stream.retry();
    else this.#channel?.postMessage({ kind: 'retry' });
  }

  #listen() {
    this.#stream = new Stream({
      lastId: this.#lastId,
      onEvent: (event) => this.#take('event', event),
      onState: (state) => this.#take('state', state),
      onHeard: () => this.#beat(),
    }).start();
  }

  /** Waits until this tab is the one that listens, or takes that from one that sleeps. */
  async #queue({ isTaking = false } = {}) {
    const waiting = new AbortController();
    this.#waiting = waiting;
    const options = isTaking ? { steal: true } : { signal: waiting.signal };
    try {
      await navigator.locks.request(NAME, options, () => {
        if (this.#ended.signal.aborted) return null;
        this.#listen();
        return new Promise((resolve) => {
          this.#ended.signal.addEventListener('abort', resolve, { once: true });
        });
      });
    } catch (error) {
      // Either it was taken back, or another tab has taken this one's place. Else there are no locks here.
      if (error.name !== 'AbortError') {
        this.#listen();
        return;
      }
    }
    if (this.#waiting !== waiting || this.#ended.signal.aborted) return;
    this.#stream?.stop();
    this.#stream = null;
    this.#heardAt = Date.now();
    this.#queue();
  }

  /** Takes over from a tab that sleeps, once somebody looks at this one. */
  #look() {
    const isHeard = Date.now() - this.#heardAt < ASLEEP_MS;
    if (!this.#channel || this.#stream || document.hidden || isHeard) return;
    this.#heardAt = Date.now();
    const before = this.#waiting;
    this.#queue({ isTaking: true });
    before?.abort();
  }

  /** Something of this tab's own stream. */
  #take(kind, value) {
    this.#apply(kind, value);
    this.#channel?.postMessage({ kind, value });
  }

  #beat() {
    if (Date.now() - this.#beatAt < BEAT_MS) return;
    this.#beatAt = Date.now();
    this.#channel?.postMessage({ kind: 'beat' });
  }

  /** Something of another tab. */
  #hear({ kind, value }) {
    if (kind === 'who' && this.#stream) this.#channel.postMessage({ kind: 'state', value: this.#state });
    if (kind === 'retry') this.#stream?.retry();
    if (this.#stream || this.#ended.signal.aborted) return;
    this.#heardAt = Date.now();
    this.#apply(kind, value);
  }

  #apply(kind, value) {
    if (this.#ended.signal.aborted) return;
    if (kind === 'event') {
      if (value.id !== null) this.#lastId = value.id;
      this.#onEvent(value);
    }
    if (kind === 'state') {
      this.#state = value;
      this.#onState(value);
    }
  }
}

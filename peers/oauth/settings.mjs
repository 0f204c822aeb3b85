// What a test may change while the peer runs, and what must be decided at the start.

// How each setting must look; the first value is where it begins.
const SETTINGS = {
  // Seconds.
  accessTokenTtl: [3600, (value) => Number.isInteger(value) && value > 0],
  // Whether the user is shown pages, or allows or denies without any.
  consent: ['ask', (value) => ['ask', 'auto', 'deny'].includes(value)],
  // Whether the resource refuses tokens that are bound to no key.
  dpopRequired: [false, (value) => typeof value === 'boolean'],
  // Whether proofs need a nonce, at both servers.
  dpopNonce: [false, (value) => typeof value === 'boolean'],
  // Resources that tokens are issued for besides that of the peer itself.
  resources: [[], (value) => Array.isArray(value) && value.every((one) => URL.canParse(one))],
  // Who gets refresh tokens: whoever asks for offline_access (with prompt=consent), or everyone.
  refreshTokens: ['offline_access', (value) => ['offline_access', 'always'].includes(value)],
  // Before a refresh is looked at.
  refreshDelayMs: [0, (value) => Number.isInteger(value) && value >= 0],
  // Refreshes wait until this is false again.
  holdRefresh: [false, (value) => typeof value === 'boolean'],
  // The status of the next answer to a refresh, which does nothing; 0 ends the connection.
  failNextRefresh: [
    null,
    (value) => value === null || value === 0 || (value >= 400 && value <= 599),
  ],
  // The next refresh succeeds, and its answer is lost.
  loseNextRefresh: [false, (value) => typeof value === 'boolean'],
};

const FEATURES = { cimd: true, dpop: true, registration: true };

export class Settings {
  #waiters = new Set();

  constructor() {
    for (const [name, [initial]] of Object.entries(SETTINGS)) this[name] = initial;
  }

  // Takes all changes, or none.
  apply(changes) {
    for (const [name, value] of Object.entries(changes)) {
      const [, fits] = SETTINGS[name] ?? [];
      if (!fits?.(value)) throw new Error(`${name} cannot be ${JSON.stringify(value)}`);
    }
    Object.assign(this, changes);
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }

  // Comes back when something was changed.
  change() {
    return new Promise((resolve) => this.#waiters.add(resolve));
  }
}

// Splits what the program was started with.
export function readOptions(text = '{}') {
  const options = JSON.parse(text);
  const features = { ...FEATURES };
  const changes = {};
  for (const [name, value] of Object.entries(options)) {
    if (name in FEATURES) features[name] = value === true;
    else changes[name] = value;
  }
  const settings = new Settings();
  settings.apply(changes);
  return { features, settings };
}

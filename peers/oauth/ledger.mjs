// What has happened, counted, for tests to look at and wait for. Holds no token, code or secret.

export class Ledger {
  #waiters = new Set();

  state = {
    registrations: {},
    authorizations: {},
    tokens: {},
    revocations: 0,
    refresh_reuse: 0,
    refreshes_held: 0,
    accepted: 0,
    unauthorized: {},
    forbidden: {},
    requests: [],
  };

  // Adds to the number at a path such as ['tokens', 'refresh_token', 'success'].
  count(path, difference = 1) {
    const names = [...path];
    const last = names.pop();
    const owner = names.reduce((value, name) => (value[name] ??= {}), this.state);
    owner[last] = (owner[last] ?? 0) + difference;
    this.#wake();
  }

  // Remembers what a client asked for, in the order of arrival.
  request(request) {
    this.state.requests.push(request);
    this.#wake();
  }

  // Comes back when the number at a JSON pointer is at least so much.
  async reached(pointer, least) {
    const reached = () => {
      const names = pointer.split('/').slice(1);
      const value = names.reduce((owner, name) => owner?.[name], this.state);
      return (Array.isArray(value) ? value.length : (value ?? 0)) >= least;
    };
    while (!reached()) {
      await new Promise((resolve) => this.#waiters.add(resolve));
    }
  }

  #wake() {
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }
}

// What the authorization server keeps, in memory and without a limit: the adapter that comes with
// it forgets things when it holds a thousand.

// Gone with the grant that they belong to.
const OF_A_GRANT = ['AccessToken', 'AuthorizationCode', 'RefreshToken'];

export class Store {
  #models = new Map();

  model(name) {
    let entries = this.#models.get(name);
    if (!entries) {
      entries = new Map();
      this.#models.set(name, entries);
    }
    return entries;
  }

  adapter(name) {
    const entries = this.model(name);
    const live = (entry) => {
      const gone = !entry || (entry.ends !== undefined && entry.ends <= Date.now());
      return gone ? undefined : entry.payload;
    };
    return {
      find: async (id) => live(entries.get(id)),
      findByUid: async (uid) =>
        [...entries.values()].map(live).find((payload) => payload?.uid === uid),
      findByUserCode: async () => undefined,
      upsert: async (id, payload, seconds) => {
        const ends = seconds === undefined ? undefined : Date.now() + seconds * 1000;
        entries.set(id, { payload, ends });
      },
      consume: async (id) => {
        entries.get(id).payload.consumed = Math.floor(Date.now() / 1000);
      },
      destroy: async (id) => {
        entries.delete(id);
      },
      revokeByGrantId: async (grantId) => {
        for (const [id, { payload }] of entries) {
          if (payload.grantId === grantId) entries.delete(id);
        }
      },
    };
  }

  // Everything that users have granted is gone; clients and sessions stay.
  forgetGrants() {
    for (const name of ['Grant', ...OF_A_GRANT]) this.model(name).clear();
  }

  // Clients that registered themselves are unknown from now on.
  forgetClients() {
    this.model('Client').clear();
  }
}

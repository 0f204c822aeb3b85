// Preloaded into the conformance suite, whose mock servers would listen on every interface:
// every TCP listener of the process binds to 127.0.0.1 instead.
'use strict';

const dns = require('node:dns');
const net = require('node:net');

const LOOPBACK = '127.0.0.1';
const listen = net.Server.prototype.listen;
const lookup = dns.lookup;
let binding = false;

// Node binds at once without a host and looks the host up first with one. Some scenarios ask for
// the port right after listen(), so the lookup that belongs to it is answered on the spot.
dns.lookup = function (hostname, ...rest) {
  const callback = rest.at(-1);
  if (binding && hostname === LOOPBACK && typeof callback === 'function') {
    return rest[0].all
      ? callback(null, [{ address: LOOPBACK, family: 4 }])
      : callback(null, LOOPBACK, 4);
  }
  return lookup.call(this, hostname, ...rest);
};

net.Server.prototype.listen = function (...args) {
  const [first, second] = args;
  if (first !== null && typeof first === 'object' && 'port' in first) {
    args[0] = { ...first, host: LOOPBACK };
  } else if (typeof first === 'number' || /^\d+$/.test(String(first))) {
    if (typeof second === 'string') {
      args[1] = LOOPBACK;
    } else {
      args.splice(1, 0, LOOPBACK);
    }
  } else if (first === undefined || first === null || typeof first === 'function') {
    // listen() and listen(callback): any free port.
    args = [0, LOOPBACK, ...args.filter((argument) => typeof argument === 'function')];
  }
  binding = true;
  try {
    listen.apply(this, args);
  } finally {
    binding = false;
  }
  const bound = this.address();
  if (typeof bound?.address === 'string' && bound.address !== LOOPBACK) {
    throw new Error(`listening on ${bound.address} instead of ${LOOPBACK}`);
  }
  return this;
};

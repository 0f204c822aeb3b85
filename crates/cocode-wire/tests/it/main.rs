//! Links over real sockets: certificates, proxies, and what leaves the machine.

mod collector;
mod proxy;
mod tls;

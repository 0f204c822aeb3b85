//! Child process trees that cannot be orphaned: spawn, guard, stop.

#!/bin/sh
# Runs the client under test for the conformance suite, and keeps its exit status and what it said
# in files: the suite takes death by a signal for success, and lets some scenarios fail without
# asking why.
"$COCODE_CONFORMANCE_DRIVER" "$@" 2>"$COCODE_CONFORMANCE_LOG"
status=$?
cat "$COCODE_CONFORMANCE_LOG" >&2
echo "$status" >"$COCODE_CONFORMANCE_STATUS"
exit "$status"

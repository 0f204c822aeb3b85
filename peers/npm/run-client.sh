#!/bin/sh
# Runs the client under test for the conformance suite, and keeps its exit status in a file: the
# suite takes death by a signal for success, and lets some scenarios fail without saying so.
"$COCODE_CONFORMANCE_DRIVER" "$@"
status=$?
echo "$status" >"$COCODE_CONFORMANCE_STATUS"
exit "$status"

//! Spans, metrics and trace context of every call, for whoever collects them.

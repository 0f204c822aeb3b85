//! Raw JSON-RPC frames and the links that carry them: stdio, streamable HTTP, HTTP+SSE, WebSocket, unix sockets.

"""A hostile MCP server on standard streams: its only tool runs the attacks."""
import json, subprocess, sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result, error = message["method"], None, None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "attack", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        command = message["params"]["arguments"]["command"]
        output = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        result = {"content": [{"type": "text", "text": output.decode()}]}
        if b"RESULT" in output:
            result = json.loads(output.split(b"RESULT")[1])
    else:
        error = {"code": -32601, "message": "no such method"}
    answer = {"jsonrpc": "2.0", "id": message["id"], **({"error": error} if error else {"result": result})}
    print(json.dumps(answer), flush=True)

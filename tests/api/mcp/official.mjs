// A session of the official TypeScript client, 1.x or 2.x, that does what it is told; what official.py is for Python's.
//
//     node official.mjs <url> <key> <how>
//
// `how` is "ts-handshake" (1.x), or "ts-legacy", "ts-auto", "ts-2026-07-28" or "ts-eliciting" (2.x). It is copied beside the node_modules that it imports.

import { createInterface } from 'node:readline';

const [url, key, how] = process.argv.slice(2);
const options = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };
const self = { name: 'tests', version: '1' };
const asked = [];

async function connected() {
  if (how === 'ts-handshake') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(self);
    const transport = new StreamableHTTPClientTransport(new URL(url), options);
    await client.connect(transport);
    return [client, transport.protocolVersion];
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const modes = { 'ts-legacy': 'legacy', 'ts-2026-07-28': { pin: '2026-07-28' } };
  const capabilities = how === 'ts-eliciting' ? { elicitation: { form: {} } } : {};
  const client = new Client(self, { capabilities, versionNegotiation: { mode: modes[how] ?? 'auto' } });
  if (how === 'ts-eliciting') {
    client.setRequestHandler('elicitation/create', async (request) => {
      asked.push(request.params.message);
      return { action: 'accept', content: { ok: true } };
    });
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return [client, client.getNegotiatedProtocolVersion()];
}

async function done(client, wish) {
  asked.length = 0;
  try {
    const result = wish.list ? await client.listTools() : await client.callTool({ name: wish.call, arguments: wish.arguments });
    return { result, asked: [...asked] };
  } catch (error) {
    return raised(error);
  }
}

function raised(error) {
  return { raised: `${error.constructor.name}: ${error.message}` };
}

function say(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

try {
  const [client, version] = await connected();
  say({ version, instructions: client.getInstructions() });
  for await (const line of createInterface({ input: process.stdin })) say(await done(client, JSON.parse(line)));
  await client.close();
} catch (error) {
  say(raised(error));
}
process.exit(0);

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { Program, runtimeCommand } from "../support/program.ts";

const SERVERS = join(PROJECT, "tests", "scenarios", "crowded_servers.ts");
/** Connections to each of the two servers. */
const CROWD = 5_000;
/** Connections that are opened at the same time; the kernel queues few. */
const BATCH = 100;
/** What clients of the crowd send: nothing, or a request that never ends. */
const BEGINNINGS = ["", "GET / HTTP/1.1\r\nhost: x\r\n"];

interface Addresses {
  readonly api: number;
  readonly probes: number;
  readonly token: string;
}

/** Opens connections and leaves them open. */
async function crowd(port: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < CROWD) {
    const batch = Array.from({ length: BATCH }, (_, index) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => socket.destroy()).resume();
      const beginning = BEGINNINGS[index % BEGINNINGS.length];
      if (beginning) socket.write(beginning);
      return socket;
    });
    await Promise.all(batch.map((socket) => once(socket, "connect")));
    sockets.push(...batch);
  }
  return sockets;
}

test("Servers respond and stop while 10,000 connections are open", async () => {
  const program = new Program([...runtimeCommand(), SERVERS]);
  const sockets: Socket[] = [];
  try {
    const [line] = await program.says(/^\{.*\}$/m);
    const { api, probes, token } = JSON.parse(line) as Addresses;
    for (const port of [api, probes]) sockets.push(...await crowd(port));
    const open = sockets.filter(({ destroyed }) => !destroyed).length;
    assert.ok(open > CROWD, `${open} connections are open`);
    const ready = await fetch(`http://127.0.0.1:${probes}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
    const headers = { authorization: `Bearer ${token}` };
    const list = await fetch(`http://127.0.0.1:${api}/api/v1/namespaces`, {
      headers,
    });
    assert.equal(list.status, 200, await list.text());
    assert.equal(await program.end("SIGTERM", 60_000), 0);
    assert.match(program.output, /^stopped$/m);
  } finally {
    for (const socket of sockets) socket.destroy();
    await program.kill();
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer, type PodHooks } from "@coracle/dev/apiserver";
import { Client, configFromText } from "@coracle/operator/client";
import { Pod } from "@coracle/operator/kinds";
import { textOf } from "../../core/client/transport/chunk_queue.ts";

const KEY = { namespace: "default", name: "web" };

async function linesOf(log: AsyncIterable<string>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of log) lines.push(line);
  return lines;
}

/** Runs a test against pods that do what the hooks say. */
async function withPods(
  pods: PodHooks,
  body: (client: Client, server: ApiServer) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({ port: false, pods });
  try {
    await server.client.create(Pod, {
      metadata: KEY,
      spec: { containers: [{ name: "main", image: "web" }] },
    });
    await body(server.client, server);
  } finally {
    await server.stop();
  }
}

test("exec passes input, half-close, both outputs and the exit code", () =>
  withPods({
    async exec({ pod, container, command, stdin, write, writeError }) {
      await write(`${pod.metadata.name} ${container} ${command.join(" ")}: `);
      await write((await textOf(stdin)).toUpperCase());
      await writeError("done");
      return 3;
    },
  }, async (client) => {
    const program = await client.exec(KEY, {
      command: ["cat", "-"],
      stdin: true,
    });
    await program.write("hello, ");
    await program.write("world");
    await program.end();
    assert.deepEqual(await program.output(), {
      code: 3,
      stdout: "web main cat -: HELLO, WORLD",
      stderr: "done",
    });
  }));

test("attach passes terminal sizes and the end of the program", () =>
  withPods({
    async attach({ command, tty, sizes, write }) {
      assert.deepEqual([command, tty], [[], true]);
      for await (const { width, height } of sizes) {
        await write(`${width}x${height} `);
        if (width === 100) break;
      }
      return 0;
    },
  }, async (client) => {
    const program = await client.attach(KEY, { stdin: true, tty: true });
    await program.resize({ width: 80, height: 24 });
    await program.resize({ width: 100, height: 40 });
    const { code, stdout } = await program.output();
    assert.deepEqual([code, stdout], [0, "80x24 100x40 "]);
  }));

test("exec reports a program that cannot run", () =>
  withPods({
    exec: () => Promise.reject(new Error("no such program")),
  }, async (client) => {
    const program = await client.exec(KEY, { command: ["x"] });
    await assert.rejects(program.exit, {
      name: "ApiError",
      message:
        /Cannot run "x" in Pod default\/web: Internal error occurred: no such program/,
    });
  }));

test("exec ends when its signal aborts, and the hook is notified", () => {
  const left = Promise.withResolvers<void>();
  return withPods({
    async exec({ signal, write }) {
      await write("started");
      signal.addEventListener("abort", () => left.resolve());
      await left.promise;
      return 0;
    },
  }, async (client) => {
    const ending = new AbortController();
    const program = await client.exec(KEY, {
      command: ["sleep"],
      signal: ending.signal,
    });
    const reading = textOf(program.stdout);
    ending.abort(new Error("enough"));
    await assert.rejects(reading, /enough/);
    await assert.rejects(program.exit, /enough/);
    await left.promise;
  });
});

test("exec notifies the hook of a disconnect and the caller of a server stop", () => {
  const left = Promise.withResolvers<void>();
  let runs = 0;
  return withPods({
    async exec({ stdin }) {
      await textOf(stdin);
      if (++runs === 1) left.resolve();
      return 0;
    },
  }, async (client, server) => {
    const options = { command: ["cat"], stdin: true };
    const first = await client.exec(KEY, options);
    await first.close();
    await left.promise;
    const second = await client.exec(KEY, options);
    const broken = assert.rejects(second.exit, /the connection was broken/);
    await server.faults.restart({ downFor: 0 });
    await broken;
  });
});

test("exec applies back-pressure to the output", () => {
  let written = 0;
  return withPods({
    async exec({ write }) {
      for (; written < 40; written++) await write(new Uint8Array(64 << 10));
      return 0;
    },
  }, async (client) => {
    const program = await client.exec(KEY, { command: ["yes"] });
    for (let turn = 0; turn < 100; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(written < 40, `${written} chunks were written unread`);
    let size = 0;
    for await (const chunk of program.stdout) size += chunk.byteLength;
    assert.equal(size, 40 * (64 << 10));
    assert.equal(await program.exit, 0);
  });
});

test("logs returns lines, and follows until the caller disconnects", () => {
  const left = Promise.withResolvers<void>();
  const calls: unknown[] = [];
  return withPods({
    async *logs({ container, follow, tailLines, sinceSeconds, signal }) {
      calls.push([container, follow, tailLines, sinceSeconds]);
      yield "one\ntw";
      yield "o\n";
      if (!follow) return;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      left.resolve();
    },
  }, async (client) => {
    const lines: string[] = [];
    const options = { tailLines: 2, sinceSeconds: 60 };
    for await (const line of client.logs(KEY, options)) lines.push(line);
    assert.deepEqual(lines, ["one", "two"]);
    for await (const line of client.logs(KEY, { follow: true })) {
      lines.push(line);
      if (lines.length === 4) break;
    }
    assert.deepEqual(lines, ["one", "two", "one", "two"]);
    await left.promise;
    assert.deepEqual(calls, [
      ["main", false, 2, 60],
      ["main", true, undefined, undefined],
    ]);
  });
});

test("portForward passes data both ways and reports a pod's error", () =>
  withPods({
    async portForward({ port, data, write }) {
      if (port !== 80) throw new Error("nobody listens");
      for await (const chunk of data) {
        const text = new TextDecoder().decode(chunk);
        await write(text.toUpperCase());
        if (text.endsWith("bye")) return;
      }
    },
  }, async (client) => {
    const connection = await client.portForward(KEY, { port: 80 }).connect();
    await connection.write(new TextEncoder().encode("hello, "));
    await connection.write(new TextEncoder().encode("bye"));
    assert.equal(await textOf(connection.data), "HELLO, BYE");
    const refused = await client.portForward(KEY, { port: 81 }).connect();
    await assert.rejects(
      textOf(refused.data),
      /Cannot connect to port 81 of Pod default\/web.*nobody listens/,
    );
  }));

test("exec, its exit code and port forwarding work over a socket", async () => {
  const server = await ApiServer.start({
    pods: {
      async exec({ command, stdin, write }) {
        await write(await textOf(stdin));
        return command.length;
      },
      async portForward({ data, write }) {
        for await (const chunk of data) {
          await write(chunk);
          if (new TextDecoder().decode(chunk) === "bye") return;
        }
      },
    },
  });
  const { client: administrator } = server;
  const client = new Client(await configFromText(server.kubeconfig));
  try {
    await administrator.create(Pod, {
      metadata: KEY,
      spec: { containers: [{ name: "main", image: "web" }] },
    });
    const options = { command: ["cat", "-"], stdin: true };
    const program = await client.exec(KEY, options);
    await program.write("over a socket");
    await program.end();
    const { code, stdout } = await program.output();
    assert.deepEqual([code, stdout], [2, "over a socket"]);
    const connection = await client.portForward(KEY, { port: 80 }).connect();
    await connection.write(new TextEncoder().encode("bye"));
    assert.equal(await textOf(connection.data), "bye");
    await assert.rejects(client.attach(KEY), /does not have a host assigned/);
  } finally {
    await client.close();
    await server.stop();
  }
});

test("calls without a hook, pod or container are rejected", () =>
  withPods({ exec: () => Promise.resolve(0) }, async (client) => {
    await assert.rejects(client.attach(KEY), {
      name: "ApiError",
      message: /pod web does not have a host assigned/,
    });
    const none = { ...KEY, name: "none" };
    await assert.rejects(
      client.exec(none, { command: ["x"] }),
      /pods "none" not found: received 404/,
    );
    await assert.rejects(
      client.exec(KEY, { command: ["x"], container: "other" }),
      /container other is not valid for pod web/,
    );
  }));

test("calls to a simulated pod say that no containers run", async () => {
  const server = await ApiServer.start({ port: false, simulate: true });
  const { client } = server;
  try {
    await client.create(Pod, {
      metadata: KEY,
      spec: {
        nodeName: "node-1",
        containers: [{ name: "main", image: "web" }],
      },
    });
    const unreachable = {
      name: "ApiError",
      status: 500,
      message:
        /: Cannot reach a container on node node-1: no containers run here, and there is no hook pods\.logs: received 500 InternalError$/,
    };
    await assert.rejects(linesOf(client.logs(KEY)), unreachable);
    await assert.rejects(client.attach(KEY), /there is no hook pods\.attach/);
    await assert.rejects(
      client.portForward(KEY, { port: 80 }).connect(),
      /there is no hook pods\.portForward/,
    );
  } finally {
    await server.stop();
  }
});

test("calls to a pod on a node that does not exist are rejected", () =>
  withPods({}, async (client) => {
    const key = { ...KEY, name: "lost" };
    await client.create(Pod, {
      metadata: key,
      spec: { nodeName: "gone", containers: [{ name: "main", image: "web" }] },
    });
    await assert.rejects(
      linesOf(client.logs(key)),
      /pods "gone" not found: received 404/,
    );
  }));

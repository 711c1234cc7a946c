import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { connect, Socket } from "node:net";
import { test } from "node:test";
import { Client, StreamRefusedError } from "@coracle/operator/client";
import {
  attachRequest,
  execRequest,
  logRequest,
  portForwardRequest,
} from "../../../../core/client/pods/pod_requests.ts";
import { textOf } from "../../../../core/client/transport/chunk_queue.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { inTime } from "../../../support/in_time.ts";
import { ScriptedStream } from "../../../support/scripted_stream.ts";
import { ScriptedTransport } from "../../../support/scripted_transport.ts";
import { until } from "../../../support/until.ts";

const KEY = { namespace: "default", name: "web" };

function clientWith(
  open: () => ScriptedStream,
): { client: Client; transport: ScriptedTransport } {
  const transport = new ScriptedTransport(() => ({}));
  transport.stream = open;
  return { transport, client: new Client({ transport }) };
}

const SUCCESS = JSON.stringify({ kind: "Status", status: "Success" });

function exitStatus(code: number): string {
  return JSON.stringify({
    kind: "Status",
    status: "Failure",
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(code) }] },
  });
}

test("Client.exec opens a stream and returns output and exit code", async () => {
  const stream = new ScriptedStream();
  const { client, transport } = clientWith(() => stream);
  const process = await client.exec(KEY, {
    command: ["sh", "-c", "a b"],
    container: "main",
  });
  const [request] = transport.streamRequests;
  assert.equal(
    request?.path,
    "/api/v1/namespaces/default/pods/web/exec?command=sh&command=-c&command=a+b&container=main&stdin=false&stdout=true&stderr=true&tty=false",
  );
  assert.deepEqual(request?.protocols, [
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
  ]);
  stream.receive(1, "out ");
  stream.receive(2, "err");
  for (const byte of new TextEncoder().encode("ä")) {
    stream.receive(1, Uint8Array.of(byte));
  }
  stream.receive(9, "dropped");
  stream.receive(3, exitStatus(3));
  stream.messages.end();
  assert.deepEqual(await process.output(), {
    code: 3,
    stdout: "out ä",
    stderr: "err",
  });
});

test("ContainerProcess fails with an ApiError for a Status that is none", async () => {
  const causes = [[null], [{ reason: "ExitCode", message: "x" }], "x"];
  const statuses = [
    null,
    ...causes.map((causes) => ({
      reason: "NonZeroExitCode",
      details: { causes },
    })),
  ];
  for (const status of statuses) {
    const stream = new ScriptedStream();
    const { client } = clientWith(() => stream);
    const process = await client.exec(KEY, { command: ["sh"] });
    stream.receive(3, JSON.stringify(status));
    stream.messages.end();
    await assert.rejects(process.output(), { name: "ApiError" });
  }
});

test("ContainerProcess sends input, its end and the terminal size", async () => {
  const stream = new ScriptedStream();
  const { client } = clientWith(() => stream);
  const process = await client.attach(KEY, { stdin: true, tty: true });
  await process.write("hello");
  await process.write(Uint8Array.of(65));
  await process.resize({ width: 80, height: 24 });
  await process.end();
  assert.deepEqual(stream.sent, [
    [0, "hello"],
    [0, "A"],
    [4, '{"Width":80,"Height":24}'],
    [255, "\0"],
  ]);
  stream.receive(3, SUCCESS);
  stream.messages.end();
  assert.equal(await process.exit, 0);
  await process.close();
  assert.equal(stream.closed, true);
});

test("ContainerProcess sends long input in parts that servers take, in order", async () => {
  const stream = new ScriptedStream();
  const sizes: number[] = [];
  const received: Uint8Array[] = [];
  stream.onSend = (message) => {
    sizes.push(message.length);
    received.push(message.slice(1));
  };
  const { client } = clientWith(() => stream);
  const process = await client.exec(KEY, { command: ["cat"], stdin: true });
  const long = new Uint8Array((3 << 20) + 5);
  for (let at = 0; at < long.length; at += 4_096) long[at] = at >> 12;
  // Both at once: the second must follow the whole first one.
  await Promise.all([process.write(long), process.write("end")]);
  // Those of wsstream in Go take messages of at most 32 MiB.
  assert.ok(sizes.every((size) => size <= (1 << 20) + 1), `${sizes}`);
  assert.deepEqual(
    Buffer.concat(received).compare(Buffer.concat([long, Buffer.from("end")])),
    0,
  );
});

test("ContainerProcess.end fails on servers without v5 channels", async () => {
  const { client } = clientWith(() => new ScriptedStream("v4.channel.k8s.io"));
  const process = await client.attach(KEY, { stdin: true });
  await assert.rejects(
    () => process.end(),
    /must support v5\.channel\.k8s\.io: received v4/,
  );
});

test("ContainerProcess.end fails on servers that chose no protocol", async () => {
  const { client } = clientWith(() => new ScriptedStream(""));
  const process = await client.attach(KEY, { stdin: true });
  await assert.rejects(() => process.end(), /must support v5/);
});

test("Requests about pods have the signal of their caller", () => {
  const { signal } = new AbortController();
  const command = ["sh"];
  for (
    const request of [
      logRequest(KEY, { signal }),
      execRequest(KEY, { command, signal }),
      attachRequest(KEY, { signal }),
      portForwardRequest(KEY, { port: 80, signal }),
    ]
  ) assert.equal(request.signal, signal, request.action);
});

test("logRequest may pause only while it follows", () => {
  assert.equal(logRequest(KEY, { follow: true }).mayPause, true);
  assert.equal(logRequest(KEY, { follow: false }).mayPause, false);
  assert.equal(logRequest(KEY).mayPause, false);
});

test("attachRequest asks for standard error unless there is a terminal", () => {
  const streams = (options: Parameters<typeof attachRequest>[1]) =>
    attachRequest(KEY, options).path.split("?")[1];
  assert.equal(streams({}), "stdin=false&stdout=true&stderr=true&tty=false");
  assert.equal(
    streams({ tty: true, stdin: true }),
    "stdin=true&stdout=true&stderr=false&tty=true",
  );
  assert.match(streams({ tty: true, stderr: true }) ?? "", /stderr=true/);
});

test("ContainerProcess reports commands that fail and broken connections", async () => {
  const cases:
    readonly (readonly [(stream: ScriptedStream) => void, RegExp])[] = [
      [
        (stream) => {
          stream.receive(
            3,
            JSON.stringify({
              status: "Failure",
              code: 500,
              message: "no such program",
              reason: "InternalError",
            }),
          );
          stream.messages.end();
        },
        /^ApiError: Cannot run "x" in Pod default\/web: no such program: received 500 InternalError$/,
      ],
      [
        (stream) => stream.messages.end(),
        /^Error: Cannot run "x" in Pod default\/web: the stream must end with a Status: received nothing$/,
      ],
      [
        (stream) => {
          stream.receive(3, "rubbish");
          stream.messages.end();
        },
        /received "rubbish"$/,
      ],
      [
        (stream) => stream.messages.fail(new Error("broken")),
        /^Error: broken$/,
      ],
    ];
  for (const [act, message] of cases) {
    const stream = new ScriptedStream();
    const { client } = clientWith(() => stream);
    const process = await client.exec(KEY, { command: ["x"] });
    act(stream);
    await assert.rejects(process.exit, message);
  }
});

test("ContainerProcess may break while nobody waits for its exit", async () => {
  const stream = new ScriptedStream();
  const { client } = clientWith(() => stream);
  const process = await client.exec(KEY, { command: ["x"] });
  stream.messages.fail(new Error("broken"));
  // An unhandled rejection would fail this file.
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  await assert.rejects(process.exit, /^Error: broken$/);
});

test("ContainerProcess applies back-pressure while an output is not read", async () => {
  const stream = new ScriptedStream();
  const { client } = clientWith(() => stream);
  const process = await client.exec(KEY, { command: ["yes"] });
  for (let count = 0; count < 20; count++) {
    stream.receive(1, new Uint8Array(64 << 10));
    await new Promise(setImmediate);
  }
  assert.equal(stream.paused, true);
  let read = 0;
  stream.receive(3, SUCCESS);
  stream.messages.end();
  for await (const chunk of process.stdout) read += chunk.byteLength;
  assert.equal(read, 20 * (64 << 10));
  assert.equal(await process.exit, 0);
});

test("ContainerProcess continues when one of its outputs is left", async () => {
  const stream = new ScriptedStream();
  const { client } = clientWith(() => stream);
  const process = await client.exec(KEY, { command: ["x"] });
  for (let count = 0; count < 10; count++) {
    stream.receive(2, new Uint8Array(64 << 10));
    await new Promise(setImmediate);
  }
  assert.equal(stream.paused, true);
  for await (const _chunk of process.stderr) break;
  stream.receive(1, "out");
  stream.receive(3, SUCCESS);
  stream.messages.end();
  const output = inTime(
    "the other output ends",
    textOf(process.stdout),
  );
  assert.equal(await output, "out");
});

test("Client throws the Status of a server that refuses a stream", async () => {
  const { client, transport } = clientWith(() => {
    throw new StreamRefusedError("https://x", {
      status: 404,
      body: '{"kind":"Status","reason":"NotFound","message":"no pod"}',
    });
  });
  await assert.rejects(() => client.exec(KEY, { command: ["x"] }), {
    name: "ApiError",
    message: 'Cannot run "x" in Pod default/web: no pod: received 404 NotFound',
  });
  Object.defineProperty(transport, "connect", { value: undefined });
  await assert.rejects(
    () => client.attach(KEY),
    /^Error: Cannot attach to Pod default\/web: the transport has no WebSockets/,
  );
  await assert.rejects(
    async () => await client.exec(KEY, { command: [] }),
    TypeError,
  );
});

test("Client.logs yields lines across chunks, including empty ones", async () => {
  async function* chunks(): AsyncGenerator<string> {
    yield "one\ntw";
    yield "o\n\nthree";
  }
  const transport = new ScriptedTransport(() => ({ body: chunks() }));
  const client = new Client({ transport });
  const lines: string[] = [];
  const options = {
    container: "main",
    follow: true,
    tailLines: 5,
    sinceSeconds: 60,
    timestamps: true,
    previous: true,
  };
  for await (const line of client.logs(KEY, options)) lines.push(line);
  assert.deepEqual(lines, ["one", "two", "", "three"]);
  assert.equal(
    transport.requests[0]?.path,
    "/api/v1/namespaces/default/pods/web/log?container=main&tailLines=5&sinceSeconds=60&follow=true&previous=true&timestamps=true",
  );
});

test("Client.logs yields an endless line in parts", async () => {
  async function* chunks(): AsyncGenerator<string> {
    for (let count = 0; count < 40; count++) yield "x".repeat(64 << 10);
  }
  const transport = new ScriptedTransport(() => ({ body: chunks() }));
  const pieces: number[] = [];
  for await (const line of new Client({ transport }).logs(KEY)) {
    pieces.push(line.length);
  }
  assert.deepEqual(pieces, [1 << 20, 1 << 20, 512 << 10]);
});

/** Process whose output is not read, so that its connection is paused. */
async function pausedExec() {
  const stream = new ScriptedStream();
  const { client } = clientWith(() => stream);
  const process = await client.exec(KEY, { command: ["yes"] });
  for (let count = 0; count < 12; count++) {
    stream.receive(1, "y".repeat(32_000));
    await new Promise(setImmediate);
  }
  assert.equal(stream.paused, true);
  return { stream, process };
}

test("ContainerProcess.close ends the streams, whatever is unread", async () => {
  const { process } = await pausedExec();
  await process.close();
  await assert.rejects(
    inTime("the streams end", process.exit),
    /must end with a Status: received nothing/,
  );
});

test("ContainerProcess whose connection breaks has no exit, whatever is unread", async () => {
  const { stream, process } = await pausedExec();
  stream.break(new Error("the signal has aborted"));
  await assert.rejects(
    inTime("the exit is known", process.exit, 5_000),
    /^Error: the signal has aborted$/,
  );
  let read = 0;
  await assert.rejects(async () => {
    for await (const chunk of process.stdout) read += chunk.byteLength;
  }, /^Error: the signal has aborted$/);
  assert.equal(read, 12 * 32_000);
});

/** Pod that echoes in capitals, on the channels of port forwarding. */
function shoutingPod(): ScriptedStream {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  stream.receive(0, Uint8Array.of(80, 0));
  stream.receive(1, Uint8Array.of(80, 0));
  stream.onSend = (message) => {
    const text = new TextDecoder().decode(message.subarray(1));
    stream.receive(0, text.toUpperCase());
    if (text.includes("bye")) stream.messages.end();
  };
  return stream;
}

test("Client.portForward opens connections to a port of a pod", async () => {
  const { client, transport } = clientWith(shoutingPod);
  const connection = await client.portForward(KEY, { port: 80 }).connect();
  assert.equal(
    transport.streamRequests[0]?.path,
    "/api/v1/namespaces/default/pods/web/portforward?ports=80",
  );
  assert.deepEqual(transport.streamRequests[0]?.protocols, [
    "v4.channel.k8s.io",
  ]);
  await connection.write(new TextEncoder().encode("hello, "));
  await connection.write(new TextEncoder().encode("bye"));
  let answer = "";
  for await (const chunk of connection.data) {
    answer += new TextDecoder().decode(chunk);
  }
  assert.equal(answer, "HELLO, BYE");
  for (const port of [0, 65_536, 1.5]) {
    assert.throws(() => client.portForward(KEY, { port }), RangeError);
  }
  const last = await client.portForward(KEY, { port: 65_535 }).connect();
  await last.close();
});

test("Client.portForward reads data whose port number comes in parts", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const connection = await client.portForward(KEY, { port: 80 }).connect();
  for (const part of [[80], [0, 1, 2, 3], [...Array(20).keys()]]) {
    stream.receive(0, Uint8Array.from(part));
  }
  stream.receive(1, Uint8Array.of(80, 0));
  stream.messages.end();
  const lengths: number[] = [];
  for await (const { byteLength } of connection.data) lengths.push(byteLength);
  assert.deepEqual(lengths, [3, 20]);
});

test("Client.portForward closes its stream when the caller does", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const connection = await client.portForward(KEY, { port: 80 }).connect();
  await connection.close();
  assert.equal(stream.closed, true);
});

test("Client.portForward closes its stream when the reader leaves", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const { data } = await client.portForward(KEY, { port: 80 }).connect();
  stream.receive(0, Uint8Array.of(80, 0, 1));
  for await (const _chunk of data) break;
  assert.equal(stream.closed, true);
});

test("Client.portForward reports a connection that breaks, to its reader", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const { data } = await client.portForward(KEY, { port: 80 }).connect();
  const read = textOf(data);
  stream.messages.fail(new Error("broken"));
  await assert.rejects(read, /broken/);
  // A rejection that nobody handles would fail this test.
  await nextTurn();
});

test("Client.portForward ends the local connection if the pod refuses it", async () => {
  const { client, transport } = clientWith(shoutingPod);
  transport.connect = () => Promise.reject(new Error("no such port"));
  const listener = await client.portForward(KEY, { port: 80 }).listen();
  try {
    const answer = talk(listener.port, "one");
    assert.equal(await inTime("the end", answer), "");
  } finally {
    await listener.close();
  }
});

test("Client.portForward reports why the pod refused", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const connection = await client.portForward(KEY, { port: 80 }).connect();
  stream.receive(0, Uint8Array.of(80, 0));
  stream.receive(1, Uint8Array.of(80, 0));
  stream.receive(1, "nobody listens");
  stream.messages.end();
  await assert.rejects(
    async () => {
      for await (const _chunk of connection.data);
    },
    /^Error: Cannot connect to port 80 of Pod default\/web: the pod refused the connection: received "nobody listens"$/,
  );
});

test("Client.portForward disconnects from the pod if the caller has left", async () => {
  const opening = Promise.withResolvers<ScriptedStream>();
  const { client, transport } = clientWith(shoutingPod);
  let asked = 0;
  transport.connect = () =>
    asked++ === 0 ? opening.promise : Promise.resolve(shoutingPod());
  const listener = await client.portForward(KEY, { port: 80 }).listen();
  const socket = connect(listener.port, "127.0.0.1");
  await until("the pod is asked", () => asked === 1);
  socket.resetAndDestroy();
  // A later message shows that the end was received.
  assert.equal(await talk(listener.port, "one bye"), "ONE BYE");
  const stream = shoutingPod();
  opening.resolve(stream);
  await until("it is closed", () => stream.closed);
  await listener.close();
});

/** Sends a text to a port and returns its reply. */
function talk(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1");
    socket.setEncoding("utf8").on("data", (part) => answer += part);
    socket.on("close", () => resolve(answer));
    socket.end(text);
  });
}

test("Client.portForward ends an idle local connection that the pod ends", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const listener = await client.portForward(KEY, { port: 80 }).listen();
  const socket = connect(
    { port: listener.port, host: "127.0.0.1", allowHalfOpen: true },
  );
  let answer = "";
  socket.setEncoding("utf8").on("data", (part) => answer += part);
  stream.receive(0, Uint8Array.of(80, 0));
  stream.receive(0, "hello");
  stream.receive(1, Uint8Array.of(80, 0));
  stream.messages.end();
  await until("the answer has ended", () => socket.readableEnded);
  assert.equal(answer, "hello");
  // The listener has closed it: what is written to it now is refused.
  socket.on("error", () => {});
  await until("the connection is closed", () => {
    socket.write("x");
    return socket.destroyed;
  });
  await listener.close();
});

test("Client.portForward listens until its signal aborts", async () => {
  const { client } = clientWith(shoutingPod);
  const abort = new AbortController();
  const { signal } = abort;
  const forward = client.portForward(KEY, { port: 80, signal });
  const { port } = await forward.listen();
  assert.equal(await talk(port, "one bye"), "ONE BYE");
  abort.abort(new Error("enough"));
  const again = connect(port, "127.0.0.1");
  const [error] = await inTime("the refusal", once(again, "error"));
  assert.equal((error as NodeJS.ErrnoException).code, "ECONNREFUSED");
  await assert.rejects(forward.listen(), /^Error: enough$/);
});

test("Client.portForward opens no listener if its signal aborts first", async () => {
  const { client } = clientWith(shoutingPod);
  const abort = new AbortController();
  const { signal } = abort;
  const listening = client.portForward(KEY, { port: 80, signal }).listen();
  abort.abort(new Error("enough"));
  await assert.rejects(listening, /^Error: enough$/);
});

test("Client.portForward listens on a local port", async () => {
  const streams: ScriptedStream[] = [];
  const { client } = clientWith(() => {
    const stream = shoutingPod();
    streams.push(stream);
    return stream;
  });
  const listener = await client.portForward(KEY, { port: 80 }).listen();
  const answers = await Promise.all(
    ["one bye", "two bye"].map((text) => talk(listener.port, text)),
  );
  assert.deepEqual(answers, ["ONE BYE", "TWO BYE"]);
  const open = connect(listener.port, "127.0.0.1");
  open.on("error", () => {});
  await until("the third connection", () => streams.length === 3);
  let isClosed = false;
  void listener.close().then(() => isClosed = true);
  try {
    // The local peer stays.
    const closed = () => isClosed && streams[2]?.closed;
    await until("it is closed", closed);
  } finally {
    open.destroy();
  }
});

test("Client.portForward disconnects from a silent pod after the caller has left", async () => {
  const stream = shoutingPod();
  const { client } = clientWith(() => stream);
  const { prototype } = Socket;
  const { setTimeout } = prototype;
  let limit: number | undefined;
  prototype.setTimeout = function (time, callback) {
    limit = time;
    return setTimeout.call(this, 1, callback);
  };
  const listener = await client.portForward(KEY, { port: 80 }).listen();
  try {
    const socket = connect(listener.port, "127.0.0.1");
    socket.end("one");
    await until("it is closed", () => stream.closed);
    assert.equal(limit, 60_000);
    socket.destroy();
  } finally {
    prototype.setTimeout = setTimeout;
    await listener.close();
  }
});

test("Client.portForward names the local port that is in use", async () => {
  const { client } = clientWith(shoutingPod);
  const forward = client.portForward(KEY, { port: 80 });
  const { port, close } = await forward.listen();
  try {
    await assert.rejects(
      forward.listen({ port }),
      new RegExp(`^Error: Cannot listen on 127\\.0\\.0\\.1:${port}: .*`),
    );
  } finally {
    await close();
  }
});

test("Client.portForward waits for a slow caller without losing data", async () => {
  const stream = new ScriptedStream("v4.channel.k8s.io");
  const { client } = clientWith(() => stream);
  const listener = await client.portForward(KEY, { port: 80 }).listen();
  const socket = connect(listener.port, "127.0.0.1").pause();
  try {
    stream.receive(0, Uint8Array.of(80, 0));
    stream.receive(1, Uint8Array.of(80, 0));
    const [size, count] = [1 << 14, 1_024];
    for (let i = 0; i < count; i++) {
      stream.receive(0, new Uint8Array(size).fill(i));
    }
    stream.messages.end();
    for (let turn = 0; turn < 500; turn++) await nextTurn();
    assert.equal(stream.paused, true, "the rest waits at the server");
    let bytes = 0;
    for await (const part of socket) {
      for (const byte of part as Uint8Array) {
        if (byte !== (bytes++ >> 14 & 0xff)) {
          assert.fail(`byte ${bytes} is ${byte}`);
        }
      }
    }
    assert.equal(bytes, size * count);
  } finally {
    socket.destroy();
    await listener.close();
  }
});

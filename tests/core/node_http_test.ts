import assert from "node:assert/strict";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  closeServer,
  listenOn,
  nodeHttp,
  serverLimits,
} from "../../core/node_http.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { inTime } from "../support/in_time.ts";
import { runtimeCommand } from "../support/program.ts";

test("Neither operator nor API server loads Node's implementation of fetch", async () => {
  const of = (path: string) =>
    JSON.stringify(pathToFileURL(join(PROJECT, path)).href);
  const { code, stdout, stderr } = await runCommand([
    ...runtimeCommand("node"),
    "--conditions=@coracle/source",
    "--input-type=module",
    "--eval",
    `await import(${of("mod.ts")});
    const { ApiServer } = await import(${of("dev/apiserver/mod.ts")});
    await (await ApiServer.start()).stop();
    const loaded = process.moduleLoadList.map((name) => name.split(" ").at(-1));
    console.log(loaded.includes("http2"), loaded.filter((name) => /undici/.test(name)));`,
  ]);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "true []\n");
});

test("A server closes connections without a whole request soon after the limit", async () => {
  const server = nodeHttp().createServer(serverLimits(300), (request) => {
    request.on("error", () => {}).resume();
  });
  const address = { port: 0, host: "127.0.0.1" };
  const port = await listenOn(server, address, "listen");
  try {
    const head = "POST / HTTP/1.1\r\nhost: x\r\n";
    const closed = ["", head, `${head}content-length: 9\r\n\r\n{`].map(
      (text) =>
        new Promise<void>((resolve) => {
          const socket = connect(port, "127.0.0.1");
          socket.on("data", () => {}).on("error", () => {});
          socket.on("close", () => resolve());
          if (text !== "") socket.write(text);
        }),
    );
    await inTime("each is closed", Promise.all(closed));
  } finally {
    await closeServer(server);
  }
});

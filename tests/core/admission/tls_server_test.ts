import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { TlsServer } from "../../../core/admission/tls_server.ts";
import { inTime } from "../../support/in_time.ts";

const authority = createAuthority({ commonName: "tls" });
const pair = issueCertificate(authority, {
  commonName: "localhost",
  usage: "server",
  hosts: ["localhost"],
});

/** Runs with a server that answers each request, and counts those of its clients. */
async function withServer(
  run: (open: (version?: "TLSv1.2") => Promise<TLSSocket>) => Promise<void>,
): Promise<void> {
  const server = new TlsServer({
    port: 0,
    host: "127.0.0.1",
    requestTimeout: 10_000,
    maxConnections: 10,
    action: "serve a test",
    handle: (_request, response) => response.end("ok"),
  });
  await server.start(pair);
  const sockets: TLSSocket[] = [];
  try {
    await run((maxVersion = undefined) => {
      const socket = connect({
        port: server.port as number,
        host: "127.0.0.1",
        servername: "localhost",
        ca: authority.certificate,
        ...maxVersion && { maxVersion },
      });
      sockets.push(socket);
      return inTime(
        "connects",
        new Promise((resolve, reject) => {
          socket.on("secureConnect", () => resolve(socket));
          socket.on("error", reject);
        }),
      );
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    await server.stop();
  }
}

/** First line of the answer to a request. */
function ask(socket: TLSSocket): Promise<string> {
  const answer = new Promise<string>((resolve, reject) => {
    socket.once("data", (data) => resolve(String(data).split("\r\n")[0] ?? ""));
    socket.once("close", () => reject(new Error("closed")));
  });
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  return inTime("answers", answer);
}

test("idle connections of others do not keep a server from new ones", () =>
  withServer(async (open) => {
    for (let count = 0; count < 30; count++) {
      assert.match(await ask(await open()), / 200 /);
    }
  }));

test("no client may negotiate the keys of its connection again", () =>
  withServer(async (open) => {
    const socket = await open("TLSv1.2");
    assert.equal(socket.getProtocol(), "TLSv1.2");
    assert.match(await ask(socket), / 200 /);
    const refused = new Promise<unknown>((resolve) => {
      socket.on("error", resolve);
      try {
        socket.renegotiate({}, (error) => error && resolve(error));
      } catch (error) {
        resolve(error); // Not offered by the runtime.
      }
    });
    assert(await inTime("the attempt fails", refused) instanceof Error);
  }));

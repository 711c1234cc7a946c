import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import {
  createAuthority,
  issueCertificate,
} from "../../../../core/admission/certificates.ts";
import { runCommand } from "../../../support/child_process.ts";
import { runtimeCommand } from "../../../support/program.ts";
import {
  temporaryFolder,
  writeText,
} from "../../../support/temporary_folder.ts";

const folder = temporaryFolder();

test("With an authority of the cluster no other one is trusted", async () => {
  const cluster = createAuthority({ commonName: "cluster" });
  const other = createAuthority({ commonName: "other" });
  const { certificate, key } = issueCertificate(other, {
    commonName: "server",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  const received: (string | undefined)[] = [];
  const server = createServer(
    { cert: certificate, key },
    (request, response) => {
      received.push(request.url);
      response.end("ok");
    },
  );
  server.on("upgrade", (request, socket) => {
    received.push(request.url);
    socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  // The process trusts the other one.
  const extra = writeText(folder, "other.pem", other.certificate);
  const result = await runCommand([
    ...runtimeCommand(),
    "tests/support/trusting_child.ts",
    `https://127.0.0.1:${port}`,
    writeText(folder, "cluster.pem", cluster.certificate),
  ], { env: { NODE_EXTRA_CA_CERTS: extra, DENO_CERT: extra } });
  server.close();
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(received, [
    "/process/read",
    "/process/watch",
    "/process/write",
    "/process/socket",
  ]);
  const errors = JSON.parse(result.stdout) as string[];
  assert.equal(errors.length, 5);
  for (const error of errors.slice(0, 4)) {
    assert.match(error, /^Error: Cannot reach https:.*(certificate|issuer)/i);
  }
  assert.match(errors[4] ?? "", /the server refused: received 403/);
});

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { after, test } from "node:test";
import {
  Client,
  type ClusterConfig,
  configFromText,
  type Credential,
  silentLogger,
} from "@coracle/operator/client";
import { createAuthority } from "../../../core/admission/certificates.ts";
import { startTlsServer } from "../../support/tls_server.ts";
import { until } from "../../support/until.ts";

const server = await startTlsServer();
after(() => server.stop());

const TRUSTED: ClusterConfig = {
  server: server.url,
  certificateAuthority: server.authority,
};

async function read(
  client: Client,
  path: string,
  body?: string,
): Promise<Record<string, unknown>> {
  const method = body === undefined ? "GET" : "POST";
  const response = await client.request({ method, path, headers: {}, body });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body) text += decoder.decode(chunk);
  return JSON.parse(text);
}

async function withClient(
  config: ClusterConfig,
  run: (client: Client) => Promise<void>,
): Promise<void> {
  const client = new Client(config, { retry: false });
  try {
    await run(client);
  } finally {
    await client.close();
  }
}

test("Client authenticates by the client certificate of a kubeconfig", async () => {
  const { certificate, key } = server.clients.jane;
  const config = await configFromText(
    JSON.stringify({
      "current-context": "dev",
      contexts: [{ name: "dev", context: { cluster: "c", user: "u" } }],
      clusters: [{
        name: "c",
        cluster: {
          server: server.url,
          "certificate-authority-data": btoa(server.authority),
          "tls-server-name": "api.internal",
        },
      }],
      users: [{
        name: "u",
        user: {
          "client-certificate-data": btoa(certificate),
          "client-key-data": btoa(key),
        },
      }],
    }),
  );
  await withClient(config, async (client) => {
    assert.equal((await read(client, "/whoami")).user, "jane");
    assert.equal(client.namespace, "default");
  });
});

test("Client refuses misspelt credentials and impersonation", () => {
  const server = "http://127.0.0.1:1";
  for (
    const [target, message] of [
      [{ credentials: { Token: "x" } }, /did you mean "token"\?/],
      [{ credentials: { current() {} } }, /"refresh" must be a function/],
      [
        { impersonate: { name: "x" } },
        /impersonate: there is no option "name"/,
      ],
    ] as const
  ) {
    assert.throws(
      () => new Client({ server, ...target as object }),
      message,
    );
  }
});

test("Client sends its token, and impersonated groups one per line", async () => {
  const config = {
    ...TRUSTED,
    credentials: { token: "secret" },
    impersonate: {
      user: "root",
      groups: ["dev", "ops"],
      extra: { why: ["a", "b"] },
    },
  };
  await withClient(config, async (client) => {
    const { headers, lines } = await read(client, "/echo");
    const sent = headers as Record<string, string>;
    assert.equal(sent["authorization"], "Bearer secret");
    assert.equal(sent["impersonate-user"], "root");
    const values = (name: string) =>
      (lines as string[]).filter((_line, index, all) =>
        index % 2 === 1 && all[index - 1]?.toLowerCase() === name
      );
    assert.deepEqual(values("impersonate-group"), ["dev", "ops"]);
    assert.deepEqual(values("impersonate-extra-why"), ["a", "b"]);
  });
});

test("Client impersonates names beyond ASCII in UTF-8, as kubectl does", async () => {
  const impersonate = {
    user: "jürgen",
    uid: "ü",
    groups: ["日本"],
    extra: { why: ["é"] },
  };
  await withClient({ ...TRUSTED, impersonate }, async (client) => {
    for (const body of [undefined, "{}"]) {
      const { lines } = await read(client, "/echo", body);
      const sent = (lines as string[]).map((line) =>
        Buffer.from(line, "latin1").toString()
      );
      for (const name of ["jürgen", "ü", "日本", "é"]) {
        assert.ok(sent.includes(name), `${name} among ${sent}`);
      }
    }
  });
});

test("Client uses a renewed client certificate and completes open responses", async () => {
  let present: Credential = server.clients.jane;
  const credentials = {
    current: () => Promise.resolve(present),
    refresh: () => Promise.resolve(present),
  };
  await withClient({ ...TRUSTED, credentials }, async (client) => {
    const response = await client.request({
      method: "GET",
      path: "/head-then-silent",
      headers: {},
    });
    const body = response.body[Symbol.asyncIterator]();
    assert.equal((await body.next()).done, false);
    assert.equal((await read(client, "/whoami")).user, "jane");
    present = server.clients.joe;
    assert.equal((await read(client, "/whoami")).user, "joe");
    assert.equal((await read(client, "/whoami")).user, "joe");
    const before = (await server.counters()).abandoned;
    await body.return?.();
    await until(
      "the old answer is given up, and not before",
      async () => (await server.counters()).abandoned === before + 1,
    );
  });
});

test("Client uses renewed certificate authorities", async () => {
  const other = createAuthority({ commonName: "other" }).certificate;
  let present = other;
  const config = {
    ...TRUSTED,
    certificateAuthority: () => Promise.resolve(present),
  };
  await withClient(config, async (client) => {
    await assert.rejects(() => read(client, "/whoami"), /Cannot reach/);
    present = server.authority;
    assert.equal((await read(client, "/whoami")).user, null);
    present = other + server.authority;
    assert.equal((await read(client, "/whoami")).user, null);
  });
});

test("Client opens a stream after renewing its credentials", async () => {
  let present: Credential = { token: "expired", ...server.clients.jane };
  const credentials = {
    current: () => Promise.resolve(present),
    refresh() {
      present = { ...present, token: "fresh" };
      return Promise.resolve(present);
    },
  };
  await withClient({ ...TRUSTED, credentials }, async (client) => {
    const key = { namespace: "default", name: "web" };
    const process = await client.exec(key, { command: ["cat"], stdin: true });
    await process.write("through ");
    await process.write("and back");
    await process.end();
    assert.deepEqual(await process.output(), {
      code: 0,
      stdout: "through and back",
      stderr: "",
    });
    await assert.rejects(
      () => client.attach({ ...key, name: "none" }),
      /^ApiError: Cannot attach to Pod default\/none: no pod: received 404/,
    );
  });
});

test("Client warns when it does not verify the server's certificate", async () => {
  const warnings: unknown[] = [];
  const logger = {
    ...silentLogger,
    warn: (message: string, fields?: object) => warnings.push(message, fields),
  };
  const client = new Client({
    server: server.url.replace("//", "//jane:s3cret@"),
    insecureSkipTlsVerify: true,
  }, { logger });
  assert.equal((await read(client, "/whoami")).user, null);
  assert.equal((await read(client, "/whoami")).user, null);
  await client.close();
  assert.deepEqual(warnings, [
    "The certificate of the API server is not verified",
    { server: server.url },
  ]);
});

test("Client.close ends all requests, including those of retired pools", async () => {
  let present: Credential = server.clients.jane;
  const credentials = {
    current: () => Promise.resolve(present),
    refresh: () => Promise.resolve(present),
  };
  const client = new Client({ ...TRUSTED, credentials });
  const open = () =>
    client.request({ method: "GET", path: "/head-then-silent", headers: {} });
  const bodies = [(await open()).body];
  present = server.clients.joe;
  bodies.push((await open()).body);
  const read = Promise.all(bodies.map((body) =>
    assert.rejects(async () => {
      for await (const _chunk of body);
    }, /Cannot reach/)
  ));
  const before = (await server.counters()).abandoned;
  await client.close();
  await read;
  await until(
    "both are given up",
    async () => (await server.counters()).abandoned === before + 2,
  );
  await assert.rejects(() => open(), /the connections were closed/);
  await client.close();
});

test("Client connects with the first request, and refuses invalid URLs", async () => {
  const before = (await server.counters()).handshakes;
  await new Client(TRUSTED).close();
  assert.equal((await server.counters()).handshakes, before);
  assert.throws(() => new Client({ server: "here" }), TypeError);
});

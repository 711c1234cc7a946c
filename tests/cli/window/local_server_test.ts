import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  jsonAnswer,
  type LocalServer,
  serveLocally,
  TOKEN_HEADER,
} from "../../../dev/cli/window/local_server.ts";
import { PROJECT } from "../../support/child_process.ts";
import { Program, runtimeCommand } from "../../support/program.ts";

/** Serves the body of each request, and a page. */
async function withServer(
  play: (server: LocalServer, url: string) => Promise<void>,
): Promise<void> {
  const server = await serveLocally({
    port: 0,
    files: { "/": { type: "text/html", body: "page" } },
    async answer({ method, path, query, body }) {
      if (path === "/fails") throw new Error("Cannot answer: not today");
      return await Promise.resolve(
        jsonAnswer({ method, path, q: query.get("q"), body }),
      );
    },
  });
  try {
    await play(server, `http://127.0.0.1:${server.port}`);
  } finally {
    await server.close();
  }
}

/** Answer to a request with a Host header of its own. */
function ask(port: number, host: string, target = "/"): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (part) => answer += part);
    socket.on("error", reject).on("close", () => resolve(answer));
    socket.write(
      `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
    );
  });
}

test("A local server answers requests that have its token", () =>
  withServer(async ({ token }, url) => {
    const response = await fetch(`${url}/some?q=1`, {
      method: "POST",
      headers: { [TOKEN_HEADER]: token },
      body: JSON.stringify({ a: 1 }),
    });
    assert.deepEqual(await response.json(), {
      method: "POST",
      path: "/some",
      q: "1",
      body: { a: 1 },
    });
  }));

test("A local server refuses requests without its token, but serves files", () =>
  withServer(async ({ token }, url) => {
    const wrong = "0".repeat(token.length);
    for (const given of ["", "x", wrong]) {
      const headers = { [TOKEN_HEADER]: given };
      const response = await fetch(`${url}/some`, { headers });
      assert.equal(response.status, 403);
      assert.ok(!(await response.text()).includes(token));
    }
    const page = await fetch(url);
    assert.equal(await page.text(), "page");
    assert.equal(page.headers.get("content-type"), "text/html");
    for (
      const [name, value] of [
        ["cache-control", "no-store"],
        ["cross-origin-resource-policy", "same-origin"],
        ["referrer-policy", "no-referrer"],
        ["x-content-type-options", "nosniff"],
      ] as const
    ) assert.equal(page.headers.get(name), value);
    const policy = page.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'; script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
  }));

test("A local server refuses foreign host names (DNS rebinding)", () =>
  withServer(async ({ port }) => {
    assert.match(await ask(port, `localhost:${port}`), /^HTTP\/1.1 200 /);
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1"]) {
      assert.match(await ask(port, host), /^HTTP\/1.1 421 /, host);
    }
  }));

test("A local server refuses other methods, large bodies and no JSON", () =>
  withServer(async ({ token }, url) => {
    const headers = { [TOKEN_HEADER]: token };
    const put = await fetch(url, { method: "PUT", headers });
    assert.equal(put.status, 405);
    await put.body?.cancel();
    for (const body of ["x".repeat(70_000), "{"]) {
      const response = await fetch(`${url}/some`, {
        method: "POST",
        headers,
        body,
      });
      assert.equal(response.status, 400);
      await response.body?.cancel();
    }
  }));

test("A local server takes a body of 65536 bytes, in parts and in UTF-8", () =>
  withServer(async ({ token }, url) => {
    const post = async (length: number) => {
      const response = await fetch(`${url}/some`, {
        method: "POST",
        headers: { [TOKEN_HEADER]: token },
        body: JSON.stringify("x".repeat(length - 2)),
      });
      return [response.status, (await response.text()).length > length];
    };
    assert.deepEqual(await post(65_536), [200, true]);
    assert.deepEqual(await post(65_537), [400, false]);
    // A letter of two bytes lies over the end of a part.
    for (const space of ["", " "]) {
      const text = "é".repeat(60_000);
      const response = await fetch(`${url}/some`, {
        method: "POST",
        headers: { [TOKEN_HEADER]: token },
        body: space + JSON.stringify(text),
      });
      assert.ok((await response.json()).body === text);
    }
  }));

test("A local server answers an error with its message, and a target without a path", () =>
  withServer(async ({ token, port }, url) => {
    const headers = { [TOKEN_HEADER]: token };
    const failed = await fetch(`${url}/fails`, { headers });
    assert.deepEqual([failed.status, await failed.text()], [
      500,
      "Cannot answer: not today\n",
    ]);
    const host = `127.0.0.1:${port}`;
    assert.match(await ask(port, host, "http://["), /^HTTP\/1.1 400 /);
  }));

test("A local server listens on this machine only, with a token of its own", async () => {
  const [one, other] = await Promise.all(
    [0, 1].map(() =>
      serveLocally({
        port: 0,
        answer: () => Promise.resolve(jsonAnswer({})),
      })
    ),
  );
  assert(one && other);
  try {
    assert.match(one.token, /^[0-9a-f]{32}$/);
    assert.notEqual(one.token, other.token);
    const socket = connect(one.port, "127.0.0.2");
    await assert.rejects(once(socket, "connect"), /ECONNREFUSED|EADDRNOT/);
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
});

test("A closed local server ends its connections, and frees its port", async () => {
  const server = await serveLocally({
    port: 0,
    answer: () => Promise.resolve(jsonAnswer({})),
  });
  const idle = connect(server.port, "127.0.0.1");
  idle.write(`GET / HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`);
  await once(idle, "data");
  const ended = once(idle.resume(), "close");
  await server.close();
  await ended;
  const again = await serveLocally({
    port: server.port,
    answer: () => Promise.resolve(jsonAnswer({})),
  });
  await again.close();
});

test("A local server without keepAlive lets its program end", async () => {
  const file = join(PROJECT, "tests", "cli", "fixtures", "local_server.ts");
  const program = new Program([...runtimeCommand(), file]);
  try {
    assert.equal(await program.ended(), 0, program.output);
  } finally {
    await program.kill();
  }
});

import assert from "node:assert/strict";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  jsonAnswer,
  type LocalServer,
  serveLocally,
  TOKEN_HEADER,
} from "../../../cli/window/local_server.ts";
import { PROJECT } from "../../support/child_process.ts";
import { Program, runtimeCommand } from "../../support/program.ts";

/** Serves the body of each request, and a page. */
async function withServer(
  play: (server: LocalServer, url: string) => Promise<void>,
): Promise<void> {
  const server = await serveLocally({
    port: 0,
    files: { "/": { type: "text/html", body: "page" } },
    answer: ({ method, path, query, body }) =>
      Promise.resolve(jsonAnswer({ method, path, q: query.get("q"), body })),
  });
  try {
    await play(server, `http://127.0.0.1:${server.port}`);
  } finally {
    await server.close();
  }
}

/** Answer to a request with a Host header of its own. */
function ask(port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (part) => answer += part);
    socket.on("error", reject).on("close", () => resolve(answer));
    socket.write(
      `GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
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

test("A local server without keepAlive lets its program end", async () => {
  const file = join(PROJECT, "tests", "cli", "fixtures", "local_server.ts");
  const program = new Program([...runtimeCommand(), file]);
  try {
    assert.equal(await program.ended(), 0, program.output);
  } finally {
    await program.kill();
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  ApiRequest,
  Credential,
  CredentialSource,
} from "@coracle/operator/client";
import { textOf } from "../../../core/client/transport/chunk_queue.ts";
import { memoizedHeaders } from "../../../core/client/middleware.ts";
import {
  authenticate,
  identityHeaders,
} from "../../../core/client/authenticate.ts";
import { pathRequest } from "../../../core/client/request.ts";
import { through } from "../../support/scripted_transport.ts";

const READ = pathRequest("/x");
const WRITE: ApiRequest = { ...READ, method: "POST", verb: "create" };

class Tokens implements CredentialSource {
  present: Credential = { token: "old" };
  next: Credential = this.present;
  refreshed = 0;

  current(): Promise<Credential> {
    return Promise.resolve(this.present);
  }

  refresh(): Promise<Credential> {
    this.refreshed++;
    this.present = this.next;
    return Promise.resolve(this.present);
  }
}

test("authenticate renews the credentials after a 401 and retries once", async () => {
  const tokens = new Tokens();
  tokens.next = { token: "new" };
  const { send, transport } = through(
    authenticate(tokens),
    ({ headers }) => ({
      status: headers["authorization"] === "Bearer new" ? 200 : 401,
    }),
  );
  assert.equal((await send(WRITE)).status, 200);
  assert.equal(transport.requests.length, 2);
  assert.equal(transport.cancelled, 1);
  assert.equal((await send(WRITE)).status, 200);
  assert.equal(tokens.refreshed, 1);
});

test("authenticate returns the 401 if renewed credentials fail or are absent", async () => {
  const tokens = new Tokens();
  const { send, transport } = through(
    authenticate(tokens),
    () => ({ status: 401 }),
  );
  assert.equal((await send(WRITE)).status, 401);
  assert.equal(transport.requests.length, 1);
  tokens.next = { token: "new" };
  assert.equal((await send(WRITE)).status, 401);
  assert.equal(transport.requests.length, 3);
});

test("authenticate leaves no 401 unread if the credentials cannot be renewed", async () => {
  const tokens = new Tokens();
  tokens.refresh = () => Promise.reject(new Error("no plugin"));
  const { send, transport } = through(
    authenticate(tokens),
    () => ({ status: 401, body: "who are you" }),
  );
  await assert.rejects(send(WRITE), /^Error: no plugin$/);
  assert.equal(transport.cancelled, 1);
});

test("authenticate hides a renewed token that the server echoes", async () => {
  const tokens = new Tokens();
  tokens.next = { token: "renewed-token" };
  const { send } = through(
    authenticate(tokens),
    ({ headers }) => ({
      status: headers["authorization"] === "Bearer renewed-token" ? 403 : 401,
      body: headers["authorization"]?.replace(/Bearer (.*)/, "got $1, $1"),
    }),
  );
  const { status, body } = await send(WRITE);
  assert.equal(status, 403);
  assert.equal(await textOf(body), "got …, …");
});

test("authenticate hides a password, and does not renew what is forbidden", async () => {
  const tokens = new Tokens();
  tokens.present = { username: "jane", password: "s3cret" };
  const { send, transport } = through(
    authenticate(tokens),
    () => ({ status: 403, body: "jane:s3cret may not" }),
  );
  const { body } = await send(WRITE);
  assert.equal(await textOf(body), "jane:… may not");
  assert.deepEqual([tokens.refreshed, transport.requests.length], [0, 1]);
});

test("authenticate keeps a header of the caller", async () => {
  const { send, transport } = through(authenticate(new Tokens()), () => ({}));
  await send({ ...READ, headers: { authorization: "mine" } });
  assert.equal(transport.requests[0]?.headers["authorization"], "mine");
});

test("memoizedHeaders keeps its result for frozen headers only", () => {
  let calls = 0;
  const merge = memoizedHeaders((headers) => {
    calls++;
    return { ...headers, agent: "test" };
  });
  const frozen = Object.freeze({ accept: "json" });
  assert.deepEqual(merge(frozen), { accept: "json", agent: "test" });
  assert.equal(merge(frozen), merge(frozen));
  assert.equal(calls, 1);
  const changing: Record<string, string> = { accept: "yaml" };
  assert.equal(merge(changing)["accept"], "yaml");
  changing["accept"] = "text";
  assert.equal(merge(changing)["accept"], "text");
  const other = Object.freeze({ accept: "yaml" });
  assert.equal(merge(other)["accept"], "yaml");
  assert.equal(merge(frozen)["accept"], "json");
});

test("identityHeaders encodes basic authentication and impersonation", () => {
  assert.deepEqual(
    identityHeaders({ username: "jane", password: "ü:x" }, {
      user: "root",
      uid: "7",
      groups: ["dev", "ops"],
      extra: { "Reason/Why\t": ["a", "b"], "50%": ["c"] },
    }),
    {
      headers: {
        authorization: `Basic ${
          btoa(String.fromCharCode(...new TextEncoder().encode("jane:ü:x")))
        }`,
        "impersonate-user": "root",
        "impersonate-uid": "7",
      },
      repeatedHeaders: {
        "impersonate-group": ["dev", "ops"],
        "impersonate-extra-reason%2Fwhy%09": ["a", "b"],
        "impersonate-extra-50%25": ["c"],
      },
    },
  );
  assert.deepEqual(identityHeaders({}), { headers: {} });
  assert.deepEqual(
    identityHeaders({}, { user: "jane", groups: ["dev"] }).repeatedHeaders,
    { "impersonate-group": ["dev"] },
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Credential,
  type StreamConnection,
  StreamRefusedError,
} from "@coracle/operator/client";
import {
  type ApiStreamRequest,
  authenticateStream,
} from "../../../core/client/authenticate.ts";

const REQUEST = { path: "/exec", protocols: [] } as unknown as ApiStreamRequest;
const OPEN = {} as StreamConnection;

/** Opens a stream; each attempt is answered by the next answer. */
async function open(
  answers: readonly (number | StreamConnection)[],
  renewed: Credential,
  first: Credential = { token: "s3cret" },
) {
  const sent: (string | undefined)[] = [];
  const left = [...answers];
  const connect = authenticateStream((request) => {
    const authorization = request.headers?.["authorization"];
    sent.push(authorization);
    const answer = left.shift();
    if (typeof answer === "object") return Promise.resolve(answer);
    const body = `refused ${authorization}`;
    return Promise.reject(
      new StreamRefusedError("https://api", { status: answer ?? 0, body }),
    );
  }, {
    credentials: {
      current: () => Promise.resolve(first),
      refresh: () => Promise.resolve(renewed),
    },
    impersonate: undefined,
  });
  const end = await connect(REQUEST).catch((error: unknown) => error);
  return { sent, end };
}

test("authenticateStream renews refused credentials, and tries once more", async () => {
  const renewed = { token: "n3w" };
  assert.deepEqual(await open([401, OPEN], renewed), {
    sent: ["Bearer s3cret", "Bearer n3w"],
    end: OPEN,
  });
  const { sent, end } = await open([401, 401], renewed);
  assert.equal(sent.length, 2);
  assert.equal((end as StreamRefusedError).body, "refused Bearer …");
});

test("authenticateStream does not repeat what is refused for another reason", async () => {
  const first = { username: "jane", password: "s3cret" };
  for (
    const [status, renewed] of [[403, { token: "n3w" }], [401, first]] as const
  ) {
    const { sent, end } = await open([status, OPEN], renewed, first);
    assert.equal(sent.length, 1);
    assert.ok(end instanceof StreamRefusedError);
    assert.equal(end.status, status);
    assert.equal(end.body, "refused Basic …", "credentials are hidden");
  }
});

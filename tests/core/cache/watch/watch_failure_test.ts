import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@coracle/operator/client";
import { ConnectionFault } from "../../../../core/cache/watch/watch_failure.ts";
import {
  namingRule,
  type ReflectorState,
  type Remedy,
  remedyFor,
} from "../../../../core/cache/watch/watch_failure.ts";
import { TooLongError } from "../../../../core/json/line_splitter.ts";

function apiError(status: number, reason = ""): ApiError {
  return new ApiError("Cannot watch Pod objects: rejected", { status, reason });
}

/** The parts of a remedy that are not as usual, shortly. */
function brief(error: unknown, state: ReflectorState): string {
  const remedy: Remedy = remedyFor(error, state);
  return [
    remedy.reason,
    remedy.relist && "relist",
    remedy.versionGone && "forget",
    remedy.pages !== "no" && `pages ${remedy.pages}`,
    remedy.immediate && "immediately",
  ].filter((part) => part !== false).join(", ");
}

test("namingRule names the right that is missing, and where", () => {
  const pods = {
    ...{ group: "", version: "v1", kind: "Pod", plural: "pods" },
    scope: "Namespaced",
  } as const;
  const text = (error: unknown, namespace?: string) =>
    String(namingRule(error, pods, namespace));
  const rule =
    '{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] }';
  const refused = apiError(403, "Forbidden");
  const all = text(refused);
  assert.ok(all.includes(`a ClusterRole with ${rule}`), all);
  assert.match(all, /^Error: Cannot watch v1 Pod: /);
  const one = text(refused, "web");
  assert.ok(one.includes(`a Role with ${rule}`), one);
  assert.match(one, /^Error: Cannot watch v1 Pod in namespace web: /);
  const other = apiError(404);
  assert.equal(namingRule(other, pods, undefined), other);
  assert.equal(namingRule(refused, undefined, undefined), refused);
});

const fault = (reason: ConstructorParameters<typeof ConnectionFault>[0]) =>
  new ConnectionFault(reason, "Cannot watch Pod objects: rejected");

test("remedyFor only resumes a watch that was interrupted", () => {
  assert.equal(brief(new Error("reset"), "watching"), "connection");
  assert.equal(brief(fault("silent"), "watching"), "silent");
  assert.equal(brief(fault("overdue"), "watching"), "overdue");
  assert.equal(brief(fault("broken"), "watching"), "broken");
  assert.equal(brief(apiError(500), "watching"), "http_500");
  assert.equal(brief(apiError(429), "watching"), "http_429");
  assert.equal(brief(apiError(401), "watching"), "http_401");
  assert.equal(brief(apiError(403), "watching"), "http_403");
  assert.equal(brief(new Error("reset"), "init-listed"), "connection");
});

test("remedyFor drops a version that the server lost, and retries immediately", () => {
  const forgotten = "expired, relist, forget, immediately";
  assert.equal(brief(apiError(410, "Expired"), "watching"), forgotten);
  assert.equal(brief(apiError(410, "Gone"), "error-event"), forgotten);
  assert.equal(brief(apiError(410), "init-page"), forgotten);
  const tooLarge = new ApiError("Cannot watch: Too large resource version", {
    status: 504,
    details: { causes: [{ reason: "ResourceVersionTooLarge" }] },
  });
  assert.equal(brief(tooLarge, "watching"), forgotten);
  assert.equal(brief(apiError(500, "Expired"), "watching"), forgotten);
  assert.equal(brief(apiError(500, "Gone"), "watching"), forgotten);
});

test("remedyFor relists where the state is in doubt", () => {
  assert.equal(
    brief(new SyntaxError("no JSON"), "watching"),
    "garbage, relist",
  );
  assert.equal(brief(fault("garbage"), "watching"), "garbage, relist");
  assert.equal(brief(apiError(404), "watching"), "http_404, relist");
  assert.equal(brief(new Error("reset"), "init-page"), "connection, relist");
  for (const status of [403, 500]) {
    assert.equal(
      brief(apiError(status), "error-event"),
      `http_${status}, relist, pages once`,
    );
  }
  assert.equal(
    brief(fault("backwards"), "watching"),
    "backwards, relist, forget, immediately",
  );
});

test("remedyFor lists immediately in pages after a line that is too long", () => {
  const error = new TooLongError("a line", { size: 9, limit: 8 });
  const paged = "too_long, relist, pages once, immediately";
  assert.equal(brief(error, "watching"), paged);
  assert.equal(brief(error, "initial-watch"), paged);
  assert.equal(brief(error, "init-page"), "too_long, relist");
});

test("remedyFor requests no streams from a server that cannot stream", () => {
  for (const status of [400, 405, 406, 415, 422]) {
    assert.equal(
      brief(apiError(status), "initial-watch"),
      `http_${status}, relist, pages always, immediately`,
    );
  }
  assert.equal(
    brief(fault("no-end"), "initial-watch"),
    "no_end, relist, pages always, immediately",
  );
});

test("remedyFor lists once in pages after a failed stream", () => {
  assert.equal(
    brief(new Error("reset"), "initial-watch"),
    "connection, relist, pages once",
  );
  assert.equal(
    brief(apiError(500), "initial-watch"),
    "http_500, relist, pages once",
  );
  assert.equal(
    brief(apiError(403), "initial-watch"),
    "http_403, relist, pages once, immediately",
  );
  assert.equal(
    brief(fault("silent"), "initial-watch"),
    "silent, relist, pages once, immediately",
  );
});

test("remedyFor requests a stream again after an unrelated failure", () => {
  for (const status of [401, 404, 408, 429]) {
    const found = brief(apiError(status), "initial-watch");
    assert.equal(found, `http_${status}, relist`);
  }
});

test("remedyFor returns the pause that the server asks for", () => {
  const error = new ApiError("Cannot watch: rejected", {
    status: 429,
    retryAfter: 7_000,
  });
  assert.equal(remedyFor(error, "watching").retryAfter, 7_000);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@coracle/operator/client";
import { type Condition, SharedStatus } from "@coracle/operator/workflows";
import type { SharedStatusOptions } from "../../../workflows/conditions/shared_status.ts";
import type { Release } from "../../support/release_kind.ts";

const READY: Condition = {
  type: "Ready",
  status: "True",
  reason: "Done",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

function release(more: Partial<Release["metadata"]> = {}): Release {
  return {
    metadata: {
      namespace: "default",
      name: "web",
      uid: "uid-1",
      resourceVersion: "1",
      ...more,
    },
    spec: { version: "1" },
  };
}

type Access = SharedStatusOptions<Release>["access"];

/** Access that notes the patches, and answers with what a function makes. */
function access(
  patch: (body: object, part: string) => Release,
  read: () => Release = release,
) {
  const patches: Record<string, unknown>[] = [];
  const given: Access = {
    read: () => Promise.resolve(read()),
    patch: (body, part) => {
      patches.push({ ...body, part });
      return Promise.resolve().then(() => patch(body, part));
    },
  };
  return { given, patches };
}

test("SharedStatus writes that something was sent, whichever part it was", async () => {
  const { given, patches } = access(() => release());
  const object = release();
  const status = new SharedStatus(object, { access: given });
  object.status = { conditions: [READY] };
  object.spec.version = "2";
  assert.equal(await status.write(object), true);
  assert.deepEqual(patches.map(({ part }) => part), ["status", "object"]);
  assert.equal(await status.write(object), false);
  assert.equal(patches.length, 2);
});

test("SharedStatus sends the conditions only if they change", async () => {
  const { given, patches } = access(() => release());
  const object: Release = { ...release(), status: { conditions: [READY] } };
  const status = new SharedStatus(object, { access: given });
  object.status!.revision = "r1";
  await status.write(object);
  assert.deepEqual(patches, [{
    status: { revision: "r1" },
    metadata: { resourceVersion: "1", uid: "uid-1" },
    part: "status",
  }]);
});

test("SharedStatus sends nothing where another writer made the same change", async () => {
  const conflict = new ApiError("Cannot patch: conflict", {
    status: 409,
    reason: "Conflict",
  });
  const { given, patches } = access(
    () => {
      throw conflict;
    },
    () => ({
      ...release({ resourceVersion: "2" }),
      status: { conditions: [READY] },
    }),
  );
  const object = release();
  const status = new SharedStatus(object, { access: given });
  object.status = { conditions: [READY] };
  assert.equal(await status.write(object), false);
  assert.equal(patches.length, 1);
});

test("SharedStatus writes its conditions once, before the rest of the status", async () => {
  // Another writer changes the condition between the writes.
  const { given, patches } = access((_, part) => ({
    ...release(),
    status: {
      conditions: [part === "object" ? { ...READY, status: "False" } : READY],
    },
  }));
  const object = release();
  const status = new SharedStatus(object, { access: given });
  object.status = { conditions: [READY], revision: "r1" };
  object.spec.version = "2";
  assert.equal(await status.write(object), true);
  assert.deepEqual(patches.map(({ part }) => part), [
    "status",
    "object",
    "status",
  ]);
  assert.deepEqual(patches[2]?.["status"], { revision: "r1" });
});

test("SharedStatus keeps the finalizers of others, each once", async () => {
  const { given, patches } = access(() => release());
  const object = release({ finalizers: ["a.io/x", "b.io/x"] });
  const status = new SharedStatus(object, { access: given });
  object.metadata.finalizers = ["b.io/x", "c.io/x"];
  await status.write(object);
  assert.deepEqual(patches[0]?.["metadata"], {
    finalizers: ["b.io/x", "c.io/x"],
    resourceVersion: "1",
    uid: "uid-1",
  });
  const kept = access(() => release());
  const other = release({ finalizers: ["a.io/x"] });
  const second = new SharedStatus(other, { access: kept.given });
  other.metadata.finalizers = ["a.io/x", "b.io/x"];
  await second.write(other);
  const metadata = kept.patches[0]?.["metadata"] as Release["metadata"];
  assert.deepEqual(metadata.finalizers, ["a.io/x", "b.io/x"]);
});

test("SharedStatus names the object that was created again in its error", async () => {
  const { given } = access(
    () => {
      throw new ApiError("Cannot patch: conflict", { status: 409 });
    },
    () => release({ uid: "uid-2" }),
  );
  const object = release();
  const status = new SharedStatus(object, { access: given });
  object.status = { conditions: [READY] };
  await assert.rejects(
    status.write(object),
    (error: unknown) =>
      ApiError.is(error) && error.isNotFound &&
      error.details?.name === "web" &&
      /uid-2 in place of uid-1/.test(error.message),
  );
});

test("SharedStatus writes once if a webhook refuses the write by 409", async () => {
  const { given, patches } = access(() => {
    throw new ApiError("Cannot patch: denied", { status: 409 });
  });
  const object = release();
  const status = new SharedStatus(object, { access: given });
  object.status = { conditions: [READY] };
  await assert.rejects(
    status.write(object),
    /denied; no other client has changed the object/,
  );
  assert.equal(patches.length, 1);
});

test("SharedStatus ends its pause between two attempts when the run is aborted", async () => {
  let version = 1;
  const { given, patches } = access(
    () => {
      throw new ApiError("Cannot patch: conflict", { status: 409 });
    },
    () => release({ resourceVersion: `${++version}` }),
  );
  const run = new AbortController();
  const object = release();
  const status = new SharedStatus(object, {
    access: { ...given, signal: run.signal },
    clock: {
      now: () => 0,
      wallTime: () => 0,
      setTimer: () => ({ cancel() {} }),
    },
  });
  object.status = { conditions: [READY] };
  const reason = new Error("The run has ended");
  const written = status.write(object);
  while (patches.length < 2) await Promise.resolve();
  await Promise.resolve();
  run.abort(reason);
  await assert.rejects(written, (error) => error === reason);
  assert.equal(patches.length, 2);
});
